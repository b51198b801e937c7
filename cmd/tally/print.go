package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// printJSON prints v on one line.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printTable prints rows in aligned columns; the first row is the heading.
func printTable(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = shown(row[i])
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// shown is s with what would break a terminal or a table quoted.
func shown(s string) string {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			return fmt.Sprintf("%q", s)
		}
	}
	return s
}
