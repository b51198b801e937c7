package docs

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-counter/tally/test/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Clean()
	os.Exit(code)
}

// defaultPort is the port that the documents write; the test's server has another.
const defaultPort = "6380"

// skipLine stands for any lines of output.
const skipLine = "…"

func TestExamples(t *testing.T) {
	examples := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		steps := parse(string(text))
		examples += len(steps)
		if len(steps) == 0 {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			server, err := proc.Tally(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer server.Kill()
			run := shell(t, server)
			for _, s := range steps {
				got := run(s.command)
				if !matches(s.want, lines(got)) {
					t.Errorf("%s:%d: $ %s\nprints\n%s\nthe document says\n%s",
						file, s.line, s.command, got, strings.Join(s.want, "\n"))
				}
			}
		})
	}
	if examples < 10 {
		t.Errorf("found %d examples in all documents; does the parser look in the wrong place?", examples)
	}
}

// documents lists the Markdown files for people.
func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(files, "../../README.md")
}

// step is one command of an example.
type step struct {
	line    int
	command string
	want    []string
}

// parse finds the examples of a document.
func parse(text string) (steps []step) {
	inside := false
	for i, line := range strings.Split(text, "\n") {
		switch command, isCommand := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "```"):
			inside = !inside && line == "```sh"
		case !inside:
		case isCommand:
			steps = append(steps, step{line: i + 1, command: command})
		case len(steps) > 0:
			last := &steps[len(steps)-1]
			last.want = append(last.want, line)
		}
	}
	return steps
}

// shell returns a function that runs a command line as a reader would, who has
// tally and redis-cli and sits at a terminal, and returns what it prints.
func shell(t *testing.T, server *proc.Server) func(command string) string {
	t.Helper()
	tally, err := proc.Build()
	if err != nil {
		t.Fatal(err)
	}
	redisCLI, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal("redis-cli is not installed; run test/setup.sh")
	}
	_, port, err := net.SplitHostPort(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	programs, folder := t.TempDir(), t.TempDir()
	// Without a terminal redis-cli prints bare values; a reader sees types.
	wrapper := fmt.Sprintf("#!/bin/sh\nexec %s --no-raw \"$@\"\n", redisCLI)
	if err := os.WriteFile(filepath.Join(programs, "redis-cli"), []byte(wrapper), 0o700); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(),
		"PATH="+programs+":"+filepath.Dir(tally)+":"+os.Getenv("PATH"),
		"TALLY_ADDR="+server.Addr)
	return func(command string) string {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, defaultPort, port))
		cmd.Dir, cmd.Env = folder, env
		out, err := cmd.CombinedOutput()
		if err != nil && len(out) == 0 {
			return err.Error()
		}
		return string(out)
	}
}

func lines(text string) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// matches compares output with what a document shows, line by line.
func matches(want, got []string) bool {
	trim := func(lines []string) (out []string) {
		for _, l := range lines {
			out = append(out, strings.TrimRight(l, " "))
		}
		for len(out) > 0 && out[len(out)-1] == "" {
			out = out[:len(out)-1]
		}
		return out
	}
	return matchLines(trim(want), trim(got))
}

func matchLines(want, got []string) bool {
	i := slices.Index(want, skipLine)
	if i < 0 {
		return slices.Equal(want, got)
	}
	if len(got) < i || !slices.Equal(want[:i], got[:i]) {
		return false
	}
	for from := i; from <= len(got); from++ {
		if matchLines(want[i+1:], got[from:]) {
			return true
		}
	}
	return false
}

// TestReference: docs/commands.md says what the server says of itself.
func TestReference(t *testing.T) {
	server, err := proc.Tally(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	want, err := Reference(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/commands.md is not what the server says; run make generate")
	}
}

func TestParse(t *testing.T) {
	text := "# T\n```sh\n$ a b\n1\n2\n$ c\n```\n\n```\n$ not run\n```\n```sh\n$ d\n…\n```\n"
	want := []step{{3, "a b", []string{"1", "2"}}, {6, "c", nil}, {13, "d", []string{skipLine}}}
	got := parse(text)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("parse = %v, want %v", got, want)
	}
}

func TestMatches(t *testing.T) {
	for _, test := range []struct {
		want, got string
		ok        bool
	}{
		{"a\nb", "a\nb", true},
		{"a", "a\nb", false},
		{"…", "", true},
		{"a\n…\nd", "a\nb\nc\nd", true},
		{"a\n…\nd", "a\nd", true},
		{"a\n…\nd", "a\nb", false},
		{"a\n…", "b", false},
		{"a  \n", "a", true},
	} {
		if ok := matches(lines(test.want), lines(test.got)); ok != test.ok {
			t.Errorf("matches(%q, %q) = %v", test.want, test.got, ok)
		}
	}
}
