package transfer

import (
	"fmt"
	"strings"
)

// csvSplitter cuts rows as RFC 4180 has them: fields between commas; a field in
// double quotes may hold commas, line ends and doubled quotes. Unlike
// encoding/csv it bounds a row, so a stray quote cannot swallow a file, and it
// keeps a carriage return inside quotes.
type csvSplitter struct {
	in      *lines
	pending []pendingLine // read for a quote that never closed, to be read again
	buf     strings.Builder
}

type pendingLine struct {
	text    string
	line    int
	tooLong bool
}

// next is lines.next with what was put back first.
func (s *csvSplitter) next() (pendingLine, error) {
	if len(s.pending) > 0 {
		l := s.pending[0]
		s.pending = s.pending[1:]
		return l, nil
	}
	text, tooLong, err := s.in.next()
	return pendingLine{text, s.in.line, tooLong}, err
}

func (s *csvSplitter) split(row *rawRow) error {
	first, err := s.next()
	for err == nil && !first.tooLong && chomp(first.text) == "" {
		first, err = s.next()
	}
	if err != nil {
		return err
	}
	if first.tooLong || len(chomp(first.text)) > RowBytesMax {
		return tooLongRow(first.line, chomp(first.text))
	}
	row.line, row.raw, row.fields = first.line, chomp(first.text), row.fields[:0]
	reason := ""
	rest := first.text
	for {
		if !strings.HasPrefix(rest, `"`) {
			field, after, more := strings.Cut(rest, ",")
			if !more {
				row.fields = append(row.fields, chomp(field))
				break
			}
			row.fields = append(row.fields, field)
			rest = after
			continue
		}
		field, after, closed := s.quoted(rest[1:], row)
		if !closed {
			return &BadRow{Line: row.line, Raw: row.raw, Reason: fmt.Sprintf(
				"the quote that opens in column %d is not closed within %d bytes", len(row.fields)+1, RowBytesMax)}
		}
		row.fields = append(row.fields, field)
		if chomp(after) == "" {
			break
		}
		if after[0] != ',' {
			reason = fmt.Sprintf("text follows the closing quote of column %d; write a quote inside quotes twice", len(row.fields))
			break
		}
		rest = after[1:]
	}
	if reason != "" {
		return &BadRow{Line: row.line, Raw: row.raw, Reason: reason}
	}
	return nil
}

// quoted reads a field up to its closing quote, over as many lines as it takes.
// When the quote never closes, the lines are put back: the bad row is then only
// the line that opened it.
func (s *csvSplitter) quoted(text string, row *rawRow) (field, after string, closed bool) {
	s.buf.Reset()
	var read []pendingLine
	bytes := 0
	for {
		for {
			i := strings.IndexByte(text, '"')
			if i < 0 {
				break
			}
			s.buf.WriteString(text[:i])
			if strings.HasPrefix(text[i+1:], `"`) {
				s.buf.WriteByte('"')
				text = text[i+2:]
				continue
			}
			if len(read) > 0 {
				raw := row.raw
				for _, l := range read {
					raw += "\n" + chomp(l.text)
				}
				row.raw = raw
			}
			return s.buf.String(), text[i+1:], true
		}
		s.buf.WriteString(text)
		l, err := s.next()
		if err == nil {
			read = append(read, l)
		}
		bytes += len(l.text)
		if err != nil || l.tooLong || bytes > RowBytesMax {
			s.pending = append(read, s.pending...)
			return "", "", false
		}
		text = l.text
	}
}
