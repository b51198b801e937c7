package transfer

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/tally-counter/tally/counter"
)

// RowBytesMax is the longest row that is read, in bytes. A longer one is a bad row.
const RowBytesMax = 1 << 20

// Format is how rows stand in a file.
type Format uint8

const (
	TSV   Format = iota // columns between tabs, taken as they stand: no quotes, no escapes
	CSV                 // RFC 4180: fields between commas, quoted where need be
	JSONL               // one JSON object a line
)

var formatNames = [...]string{"tsv", "csv", "jsonl"}

func (f Format) String() string { return formatNames[f] }

// ParseFormat reads what String writes. Errors: ErrInvalid.
func ParseFormat(s string) (Format, error) {
	for i, name := range formatNames {
		if s == name {
			return Format(i), nil
		}
	}
	return 0, fmt.Errorf("format %q is not known; use tsv, csv or jsonl: %w", s, counter.ErrInvalid)
}

// FormatOf tells the format by a file's name. Errors: ErrInvalid.
func FormatOf(name string) (Format, error) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".tsv", ".tab":
		return TSV, nil
	case ".csv":
		return CSV, nil
	case ".jsonl", ".ndjson":
		return JSONL, nil
	}
	return 0, fmt.Errorf("the format of %q cannot be told from its name; say --format tsv, csv or jsonl: %w", name, counter.ErrInvalid)
}

// Row is one row of a file. Its strings may be kept.
type Row struct {
	Line   int      // where it begins; the first line is 1
	Raw    string   // as it stands in the file, without the end of line
	Fields []string // the wanted columns in their order; valid until the next Read
	Has    []bool   // whether the row has the column at all (JSON lines only: null and missing are not)
}

// BadRow is a row that cannot be imported. Reading goes on behind it.
type BadRow struct {
	Line   int
	Reason string
	Raw    string // up to RowBytesMax bytes
}

func (b *BadRow) Error() string { return fmt.Sprintf("line %d: %s", b.Line, b.Reason) }

// Reader reads rows.
type Reader interface {
	// Read reads the next row into row. io.EOF at the end; a *BadRow is not the end.
	Read(row *Row) error
}

// NewReader reads rows of format f from r and gives of each the columns named.
// With header, TSV and CSV take names from the first row; without it, columns
// are named 1, 2, 3 …. JSON lines name their own and ignore header.
//
// Errors: ErrInvalid when the header lacks a column; those of r.
func NewReader(f Format, r io.Reader, columns []string, header bool) (Reader, error) {
	in := newLines(r)
	switch f {
	case CSV:
		return newTable(&csvSplitter{in: in}, columns, header)
	case JSONL:
		return &jsonReader{in: in, columns: columns, index: indexOf(columns)}, nil
	default:
		return newTable(&tsvSplitter{in: in}, columns, header)
	}
}

func indexOf(columns []string) map[string]int {
	index := make(map[string]int, len(columns))
	for i, name := range columns {
		index[name] = i
	}
	return index
}

// lines reads a file line by line, each of bounded length.
type lines struct {
	r    *bufio.Reader
	line int // of the line read last; the first is 1
}

func newLines(r io.Reader) *lines {
	l := &lines{r: bufio.NewReaderSize(r, 1<<18)}
	if bom, _ := l.r.Peek(3); string(bom) == "\xef\xbb\xbf" {
		_, _ = l.r.Discard(3) // cannot fail: the bytes are buffered
	}
	return l
}

// next returns the next line with its end. A line that is longer than
// RowBytesMax is cut there and read to its end.
func (l *lines) next() (text string, tooLong bool, err error) {
	b, err := l.r.ReadSlice('\n')
	if err == nil || err == io.EOF && len(b) > 0 {
		l.line++
		return string(b), false, nil
	}
	if err != bufio.ErrBufferFull {
		return "", false, err
	}
	l.line++
	long := append([]byte(nil), b...)
	for err == bufio.ErrBufferFull {
		b, err = l.r.ReadSlice('\n')
		if room := RowBytesMax + 2 - len(long); room < len(b) {
			tooLong = true
			b = b[:max(0, room)]
		}
		long = append(long, b...)
	}
	if err == io.EOF {
		err = nil
	}
	return string(long), tooLong, err
}

// chomp cuts the end of line off.
func chomp(s string) string {
	s = strings.TrimSuffix(s, "\n")
	return strings.TrimSuffix(s, "\r")
}

func tooLongRow(line int, raw string) *BadRow {
	return &BadRow{Line: line, Reason: fmt.Sprintf("the row is longer than %d bytes", RowBytesMax), Raw: raw}
}
