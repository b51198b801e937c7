// Command bench measures Tally beside Redis servers that it starts in the same
// run on the same machine, and prints one table: medians, and how many times
// better Tally is. A row that Tally loses is printed like any other.
//
// The load generator is redis-benchmark for all of them. It runs on the same
// processors as the servers, so requests per second say what the machine
// reaches; the server's processor time per request says what the server costs.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/tally-counter/tally/test/proc"
)

// bench is one run.
type bench struct {
	scale  float64 // 1: the full number of objects and requests
	rounds int     // how often each figure is measured; the median counts
	dir    string  // for the servers' data
	report *report
}

// suites in the order they run. Each fills rows of the report.
var suites = []struct {
	name string
	run  func(*bench) error
}{
	{"traffic", traffic},
	{"memory", memory},
	{"restart", restart},
	{"table", tables},
}

func main() {
	log.SetFlags(log.Ltime)
	scale := flag.Float64("scale", 1, "share of the full size: 1 is 20 million objects, 1 million hot keys")
	rounds := flag.Int("rounds", 3, "times that each figure is measured; the median is printed")
	only := flag.String("only", "", "run the suites that match this regular expression: traffic, memory, restart, table")
	dir := flag.String("dir", "", "folder for the servers' data, on the disk to measure (default: a temporary folder)")
	out := flag.String("json", "bench/out/last.json", "file for the figures as JSON; empty: none")
	flag.Parse()
	if flag.NArg() > 0 || *scale <= 0 || *rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	err := run(*scale, *rounds, *only, *dir, *out)
	proc.Clean()
	if err != nil {
		log.Fatal(err)
	}
}

func run(scale float64, rounds int, only, dir, out string) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	data, err := os.MkdirTemp(dir, "tally-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)

	b := &bench{scale: scale, rounds: rounds, dir: data, report: &report{
		Scale: scale, Rounds: rounds, CPUs: runtime.NumCPU(), Go: runtime.Version(), Began: time.Now().UTC(),
	}}
	for _, s := range suites {
		if !chosen.MatchString(s.name) {
			continue
		}
		if err := s.run(b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	b.report.print(os.Stdout)
	if out == "" {
		return nil
	}
	text, err := json.MarshalIndent(b.report, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o666)
}

// scaled returns n at this run's scale, at least least.
func (b *bench) scaled(n, least int) int { return max(int(float64(n)*b.scale), least) }

// folder makes a new folder for one server's data.
func (b *bench) folder() (string, error) { return os.MkdirTemp(b.dir, "data-") }
