package transfer

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tally-counter/tally/counter"
)

// splitter cuts a file into rows of fields.
type splitter interface {
	// split reads the next row that is not empty. io.EOF at the end, *BadRow for a
	// row that cannot be cut.
	split(row *rawRow) error
}

type rawRow struct {
	line   int
	raw    string
	fields []string // reused from row to row
}

// tableReader picks the wanted columns out of a splitter's rows.
type tableReader struct {
	rows   splitter
	raw    rawRow
	first  bool  // raw holds a row that was read for its width
	width  int   // columns that every row must have
	picked []int // index of each wanted column
}

func newTable(rows splitter, columns []string, header bool) (Reader, error) {
	t := &tableReader{rows: rows}
	err := rows.split(&t.raw)
	if errors.Is(err, io.EOF) {
		if header {
			return nil, fmt.Errorf("the file is empty, not even a header is there: %w", counter.ErrInvalid)
		}
		return t, nil
	}
	var bad *BadRow
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("the first row, %s: %w", bad, counter.ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	t.width = len(t.raw.fields)
	names := t.raw.fields
	if !header {
		t.first = true
		names = make([]string, t.width)
		for i := range names {
			names[i] = strconv.Itoa(i + 1)
		}
	}
	for _, want := range columns {
		i := slices.Index(names, want)
		if i < 0 {
			return nil, fmt.Errorf("there is no column %q; the columns are %s: %w", want, list(names), counter.ErrInvalid)
		}
		t.picked = append(t.picked, i)
	}
	return t, nil
}

// list names columns for a message, not too many.
func list(names []string) string {
	const most = 20
	s := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		s += ", …"
	}
	return fmt.Sprintf("%.500s", s)
}

func (t *tableReader) Read(row *Row) error {
	if !t.first {
		if err := t.rows.split(&t.raw); err != nil {
			return err
		}
	}
	t.first = false
	if len(t.raw.fields) != t.width {
		return &BadRow{Line: t.raw.line, Raw: t.raw.raw, Reason: fmt.Sprintf("it has %d columns, the first row has %d", len(t.raw.fields), t.width)}
	}
	row.Line, row.Raw = t.raw.line, t.raw.raw
	row.Fields, row.Has = row.Fields[:0], row.Has[:0]
	for _, i := range t.picked {
		row.Fields = append(row.Fields, t.raw.fields[i])
		row.Has = append(row.Has, true)
	}
	return nil
}
