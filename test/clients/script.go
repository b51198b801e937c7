// Package clients holds one script of commands and runs it through real Redis
// clients of five languages against a real server. Each client's program, in a
// folder of its own, reads commands and prints replies; what is expected stands
// in the script only.
package clients

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// step is one command with the reply it must get.
type step struct {
	place   string // file:line
	command string
	want    []string // the leaves of the reply
	anyway  bool     // in any order
}

// readScript reads the steps of the files, one after the other.
func readScript(files ...string) ([]step, error) {
	var steps []step
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			s := step{place: fmt.Sprintf("%s:%d", file, i+1)}
			var reply string
			var ok bool
			if s.command, reply, ok = strings.Cut(line, " => "); !ok {
				if s.command, reply, ok = strings.Cut(line, " ~> "); !ok {
					return nil, fmt.Errorf("%s: %q has no => or ~>", s.place, line)
				}
				s.anyway = true
			}
			s.want = strings.Fields(reply)
			steps = append(steps, s)
		}
	}
	return steps, nil
}

// commands is what a client's program is given to read.
func commands(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString(s.command)
		b.WriteByte('\n')
	}
	return b.String()
}

// check compares replies, one line each, with what the steps want and returns
// what is wrong.
func check(steps []step, replies []string) (wrong []string) {
	for i, s := range steps {
		if i == len(replies) {
			return append(wrong, fmt.Sprintf("%s: no reply to %s, nor to anything after it", s.place, s.command))
		}
		got, want := strings.Fields(replies[i]), slices.Clone(s.want)
		if s.anyway {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s: %s => %s, want %s", s.place, s.command, replies[i], strings.Join(s.want, " ")))
		}
	}
	if len(replies) > len(steps) {
		wrong = append(wrong, fmt.Sprintf("%d replies more than commands, the first: %s", len(replies)-len(steps), replies[len(steps)]))
	}
	return wrong
}
