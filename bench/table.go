package main

import (
	"bufio"
	"bytes"
	"fmt"
	"log"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// tableSizes are the rows with which the table alone is measured: the middle one
// is the size of the targets, all of them show how cost grows.
var tableSizes = []int{1_000_000, objectsMax, 100_000_000}

// tableOps is how many adds and gets are measured at each size.
const tableOps = 5_000_000

// tableFigures are the lines of bench/table's output that become figures.
var tableFigures = []struct {
	begins string // of the line
	name   string
	target string // at the middle size
}{
	{"add to an existing row", "add, one by one", "≥ 2 M/s"},
	{"add in batches of 64", "add, batches of 64", "≥ 4 M/s"},
	{"get of a row", "get", ""},
}

// tables measures the compact table by itself, without server, journal or disk: the
// program bench/table, once for each data set and size.
func tables(b *bench) error {
	program := filepath.Join(b.dir, "table")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/tally-counter/tally/bench/table").CombinedOutput(); err != nil {
		return fmt.Errorf("building bench/table: %w\n%s", err, out)
	}
	for _, data := range []string{"random", "ordered"} {
		for _, size := range tableSizes {
			rows := b.scaled(size, 10_000)
			out, err := exec.Command(program, "-case", data, "-rows", strconv.Itoa(rows),
				"-ops", strconv.Itoa(b.scaled(tableOps, 10_000))).Output()
			if err != nil {
				return fmt.Errorf("bench/table: %w\n%s", err, out)
			}
			log.Printf("table: %s", strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "\n\t"))
			if err := b.tableRows(data, rows, size == objectsMax, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// tableRows takes the figures out of bench/table's output.
func (b *bench) tableRows(data string, rows int, isTarget bool, out []byte) error {
	prefix := fmt.Sprintf("table, %s ids, %s rows: ", data, readable(float64(rows)))
	found := 0
	note := func(name, unit, target string, rising bool, value float64) {
		if !isTarget {
			target = ""
		}
		b.report.add(figure{prefix + name, unit, rising, target}, tallyName, value)
		found++
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		line := lines.Text()
		var perRow float64
		if n, _ := fmt.Sscanf(line, "after the load: %f B a row", &perRow); n == 1 {
			note("memory", "bytes/row", map[string]string{"random": "≤ 7 B", "ordered": "≤ 7.5 B"}[data], false, perRow)
		}
		for _, f := range tableFigures {
			fields := strings.Fields(line)
			if !strings.HasPrefix(line, f.begins) || len(fields) < 2 || fields[len(fields)-1] != "M/s" {
				continue
			}
			millions, err := strconv.ParseFloat(fields[len(fields)-2], 64)
			if err != nil {
				return fmt.Errorf("bench/table: line %q: %w", line, err)
			}
			note(f.name, "M/s", f.target, true, millions)
		}
	}
	if found != 1+len(tableFigures) {
		return fmt.Errorf("bench/table printed %d of %d figures:\n%s", found, 1+len(tableFigures), out)
	}
	return nil
}
