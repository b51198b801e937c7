package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tally-counter/tally/counter"
)

// scanStep is how many objects one scan asks for.
const scanStep = 1000

// Object is one object with its counters.
type Object struct {
	ID     counter.ID
	Values []counter.Value
}

// Page is a stretch of a scan.
type Page struct {
	Objects []Object
	Next    counter.ID // where to go on, when More
	More    bool
}

// Source can be scanned.
type Source interface {
	// Scan returns up to limit objects of a namespace with id ≥ from, in id order.
	Scan(ctx context.Context, namespace string, from counter.ID, limit int) (Page, error)
}

// Exported is what an export wrote.
type Exported struct {
	Objects int64  `json:"objects"`
	Rows    int64  `json:"rows"`
	Next    string `json:"next,omitempty"` // after an error: the id to go on from
}

// Columns are the columns of an export, one row a counter.
var Columns = [...]string{"id", "counter", "value"}

// Export writes the objects of a namespace with id ≥ from to w in id order: a
// row for every counter, with the columns id, counter, value. Whole objects only
// are written, each stretch of them in one Write. header asks for the row of
// column names that TSV and CSV begin with.
//
// The rows can be imported again as Values with the default mapping, and make
// the same counters, those that hold 0 included. Expiry times are not exported.
// Objects that change meanwhile are written as they stood when they were passed.
//
// Errors: ErrInvalid when a name cannot be written in format f; those of src and w.
func Export(ctx context.Context, src Source, w io.Writer, namespace string, from counter.ID, f Format, header bool, progress func(Exported)) (Exported, error) {
	var out Exported
	var buf bytes.Buffer
	if header && f != JSONL {
		writeFields(&buf, f, Columns[0], Columns[1], Columns[2])
	}
	for {
		page, err := src.Scan(ctx, namespace, from, scanStep)
		if err != nil {
			out.Next = from.String()
			return out, err
		}
		rows, objects := int64(0), int64(0)
		for _, o := range page.Objects {
			whole := buf.Len()
			for _, v := range o.Values {
				if err = writeValue(&buf, f, o.ID.String(), v); err != nil {
					break
				}
			}
			if err != nil {
				buf.Truncate(whole)
				out.Next = o.ID.String()
				break
			}
			rows += int64(len(o.Values))
			objects++
		}
		if _, werr := w.Write(buf.Bytes()); werr != nil {
			out.Next = from.String()
			return out, werr
		}
		buf.Reset()
		out.Objects += objects
		out.Rows += rows
		if progress != nil {
			progress(out)
		}
		if err != nil || !page.More {
			return out, err
		}
		from = page.Next
	}
}

func writeValue(buf *bytes.Buffer, f Format, id string, v counter.Value) error {
	switch f {
	case TSV:
		if s, ok := plain(id, v.Counter); !ok {
			return fmt.Errorf("object %.80q: %.80q holds a tab or line end, which TSV cannot say; export as csv or jsonl: %w", id, s, counter.ErrInvalid)
		}
	case JSONL:
		if !utf8.ValidString(id) || !utf8.ValidString(v.Counter) {
			return fmt.Errorf("object %.80q, counter %.80q: the name is not UTF-8, which JSON cannot say; export as csv: %w", id, v.Counter, counter.ErrInvalid)
		}
		buf.WriteString(`{"id":`)
		writeJSON(buf, id)
		buf.WriteString(`,"counter":`)
		writeJSON(buf, v.Counter)
		buf.WriteString(`,"value":`)
		buf.Write(strconv.AppendInt(buf.AvailableBuffer(), v.Value, 10))
		buf.WriteString("}\n")
		return nil
	}
	writeFields(buf, f, id, v.Counter, strconv.FormatInt(v.Value, 10))
	return nil
}

// plain returns the first name that does not survive in a TSV file.
func plain(names ...string) (bad string, ok bool) {
	for _, s := range names {
		if strings.ContainsAny(s, "\t\n\r") {
			return s, false
		}
	}
	return "", true
}

func writeJSON(buf *bytes.Buffer, s string) {
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // cannot fail: a string, into memory
	buf.Truncate(buf.Len() - 1)
}

func writeFields(buf *bytes.Buffer, f Format, fields ...string) {
	separator := byte('\t')
	if f == CSV {
		separator = ','
	}
	for i, s := range fields {
		if i > 0 {
			buf.WriteByte(separator)
		}
		if f == CSV && (s == "" || strings.ContainsAny(s, ",\"\r\n")) {
			buf.WriteByte('"')
			buf.WriteString(strings.ReplaceAll(s, `"`, `""`))
			buf.WriteByte('"')
			continue
		}
		buf.WriteString(s)
	}
	buf.WriteByte('\n')
}
