package transfer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tally-counter/tally/counter"
)

// readAll returns rows as "line:field|field" and bad rows as "line: reason".
func readAll(t *testing.T, f Format, text string, header bool, columns ...string) []string {
	t.Helper()
	r, err := NewReader(f, strings.NewReader(text), columns, header)
	if err != nil {
		return []string{"error: " + err.Error()}
	}
	var out []string
	var row Row
	for {
		err := r.Read(&row)
		var bad *BadRow
		switch {
		case errors.Is(err, io.EOF):
			return out
		case errors.As(err, &bad):
			out = append(out, bad.Error())
		case err != nil:
			t.Fatal(err)
		default:
			out = append(out, fmt.Sprintf("%d:%s", row.Line, strings.Join(row.Fields, "|")))
		}
	}
}

func TestReaders(t *testing.T) {
	long := strings.Repeat("x", RowBytesMax)
	for name, c := range map[string]struct {
		format  Format
		text    string
		header  bool
		columns string
		want    []string
	}{
		"tsv by name":            {TSV, "a\tb\tc\n1\t2\t3\n4\t5\t6\n", true, "c a", []string{"2:3|1", "3:6|4"}},
		"tsv by number":          {TSV, "1\t2\n3\t4", false, "2", []string{"1:2", "2:4"}},
		"tsv takes text as is":   {TSV, "a\n\"q\\t\"\n", true, "a", []string{`2:"q\t"`}},
		"tsv line ends, BOM":     {TSV, "\xef\xbb\xbfa\tb\r\n1\t2\r\n\r\n3\t4\r\n", true, "a b", []string{"2:1|2", "4:3|4"}},
		"tsv width":              {TSV, "a\tb\n1\n1\t2\t3\n1\t2\n", true, "a", []string{"line 2: it has 1 columns, the first row has 2", "line 3: it has 3 columns, the first row has 2", "4:1"}},
		"tsv no such column":     {TSV, "a\tb\n", true, "z", []string{`error: there is no column "z"; the columns are a, b: invalid`}},
		"tsv empty":              {TSV, "", true, "a", []string{"error: the file is empty, not even a header is there: invalid"}},
		"tsv empty, no header":   {TSV, "", false, "1", nil},
		"tsv longest":            {TSV, long + "\n", false, "1", []string{"1:" + long}},
		"tsv too long":           {TSV, "a\n" + long + "x\nb\n", false, "1", []string{"1:a", "line 2: the row is longer than 1048576 bytes", "3:b"}},
		"tsv far too long":       {TSV, "a\n" + long + long + long + "\nb\n", false, "1", []string{"1:a", "line 2: the row is longer than 1048576 bytes", "3:b"}},
		"csv quotes":             {CSV, "id,n\n\"a,b\",1\n\"say \"\"hi\"\"\",2\n\"\",3\n", true, "id n", []string{"2:a,b|1", `3:say "hi"|2`, "4:|3"}},
		"csv lines in quotes":    {CSV, "id,n\n\"a\r\nb\n\",1\r\nc,2\r\n", true, "id n", []string{"2:a\r\nb\n|1", "5:c|2"}},
		"csv text after quote":   {CSV, "id,n\n\"a\"b,1\nc,2\n", true, "id", []string{"line 2: text follows the closing quote of column 1; write a quote inside quotes twice", "3:c"}},
		"csv open quote":         {CSV, "id,n\n\"a,1\nc,2\nd,3\n", true, "id n", []string{"line 2: the quote that opens in column 1 is not closed within 1048576 bytes", "3:c|2", "4:d|3"}},
		"csv quote inside":       {CSV, "5\" disk,1\n", false, "1", []string{"1:5\" disk"}},
		"csv last field empty":   {CSV, "a,b\n1,\n", true, "a b", []string{"2:1|"}},
		"jsonl":                  {JSONL, "{\"id\":1001,\"n\":\"x\"}\n\n{\"n\":null,\"id\":18446744073709551615}\n", true, "id n", []string{"1:1001|x", "3:18446744073709551615|"}},
		"jsonl numbers as are":   {JSONL, "{\"n\":1e3}\n{\"n\":-0.5}\n", true, "n", []string{"1:1e3", "2:-0.5"}},
		"jsonl other values":     {JSONL, "{\"n\":true}\n[1]\nnull\nx\n{\"n\":1}\n", true, "n", []string{`line 1: "n" is neither a number nor a valid string`, "line 2: it is not a JSON object: json: cannot unmarshal array into Go value of type map[string]json.RawMessage", "line 3: it is not a JSON object: null", "line 4: it is not a JSON object: invalid character 'x' looking for beginning of value", "5:1"}},
		"jsonl not UTF-8":        {JSONL, "{\"n\":\"\xff\"}\n", true, "n", []string{"line 1: it is not UTF-8"}},
		"jsonl half a surrogate": {JSONL, `{"n":"\ud800"}` + "\n", true, "n", []string{`line 1: "n" is neither a number nor a valid string`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := readAll(t, c.format, c.text, c.header, strings.Fields(c.columns)...)
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %.300q\nwant %.300q", got, c.want)
			}
		})
	}
}

func TestFormatNames(t *testing.T) {
	for name, want := range map[string]Format{"a.tsv": TSV, "a.TAB": TSV, "b.x.csv": CSV, "c.ndjson": JSONL, "c.jsonl": JSONL} {
		if got, err := FormatOf(name); err != nil || got != want {
			t.Errorf("FormatOf(%q) = %s, %v", name, got, err)
		}
	}
	for _, f := range []Format{TSV, CSV, JSONL} {
		if got, err := ParseFormat(f.String()); err != nil || got != f {
			t.Errorf("ParseFormat(%q) = %s, %v", f, got, err)
		}
	}
	if _, err := FormatOf("x.gz"); !errors.Is(err, counter.ErrInvalid) {
		t.Errorf("FormatOf(x.gz): %v", err)
	}
}

// FuzzReaders: any bytes give rows or reasons, whatever the format, and end.
func FuzzReaders(f *testing.F) {
	for _, s := range []string{"", "a\tb\n1\t2\n", "a,b\n\"1\n\",2\n\"", "{\"a\":1}\n{\"a\":\"\\u0000\"}", "\"\"\"\n\"", "\xef\xbb\xbf"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, format := range []Format{TSV, CSV, JSONL} {
			r, err := NewReader(format, strings.NewReader(string(b)), []string{"1"}, false)
			if err != nil {
				continue
			}
			var row Row
			lines := 1 + strings.Count(string(b), "\n")
			for n := 0; ; n++ {
				err := r.Read(&row)
				if errors.Is(err, io.EOF) {
					break
				}
				if n > lines {
					t.Fatalf("%s: more rows than lines", format)
				}
				var bad *BadRow
				if err != nil && !errors.As(err, &bad) {
					t.Fatal(err)
				}
			}
		}
	})
}

// FuzzCSV: what the standard library reads as CSV is read alike.
func FuzzCSV(f *testing.F) {
	f.Add("a,b\n\"1\n,\"\"\",2\n")
	f.Add("a\n\"b\"\n")
	f.Fuzz(func(t *testing.T, s string) {
		// What differs on purpose: line ends inside quotes, quotes inside bare fields, lone CR, BOM.
		if strings.Contains(s, "\r") || !utf8.ValidString(s) || strings.HasPrefix(s, "\ufeff") {
			return
		}
		std := csv.NewReader(strings.NewReader(s))
		std.FieldsPerRecord = -1
		want, err := std.ReadAll()
		if err != nil {
			return
		}
		ours := csvSplitter{in: newLines(strings.NewReader(s))}
		var row rawRow
		for i := 0; ; i++ {
			err := ours.split(&row)
			if errors.Is(err, io.EOF) {
				if i != len(want) {
					t.Fatalf("%d rows, want %d", i, len(want))
				}
				return
			}
			if err != nil || i >= len(want) || !slices.Equal(row.fields, want[i]) {
				t.Fatalf("row %d: %q, %v; want %q", i, row.fields, err, want)
			}
		}
	})
}
