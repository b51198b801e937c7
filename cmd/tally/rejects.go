package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tally-counter/tally/transfer"
)

// rejectsShownMax is how many bad rows are shown; a file takes all of them.
const rejectsShownMax = 20

// rejects reports bad rows.
type rejects struct {
	to    io.Writer
	n     int64
	file  *os.File // nil: none
	lines *bufio.Writer
	err   error
}

func openRejects(name string, to io.Writer) (*rejects, error) {
	r := &rejects{to: to}
	if name == "" {
		return r, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, usage("--rejects: %w", err)
	}
	r.file, r.lines = f, bufio.NewWriter(f)
	_, r.err = r.lines.WriteString("line\treason\trow\n")
	return r, nil
}

func (r *rejects) add(row transfer.BadRow) {
	if r.n++; r.n <= rejectsShownMax {
		fmt.Fprintf(r.to, "line %d: %s\n", row.Line, row.Reason)
	}
	if r.file != nil && r.err == nil {
		_, r.err = fmt.Fprintf(r.lines, "%d\t%s\t%s\n", row.Line, oneLine(row.Reason), oneLine(row.Raw))
	}
}

// oneLine keeps a row of several lines on one. Tabs stay: the row comes last.
func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(s)
}

// close reports how many bad rows were not shown.
func (r *rejects) close() error {
	if more := r.n - rejectsShownMax; more > 0 && r.file == nil {
		fmt.Fprintf(r.to, "… and %d more bad rows; --rejects FILE takes all of them\n", more)
	}
	if r.file == nil {
		return nil
	}
	return errors.Join(r.err, r.lines.Flush(), r.file.Close())
}
