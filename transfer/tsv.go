package transfer

import "strings"

// tsvSplitter cuts lines at tabs. Nothing is unescaped: logs hold backslashes
// and quotes that mean themselves.
type tsvSplitter struct{ in *lines }

func (s *tsvSplitter) split(row *rawRow) error {
	for {
		text, tooLong, err := s.in.next()
		if err != nil {
			return err
		}
		text = chomp(text)
		if tooLong || len(text) > RowBytesMax {
			return tooLongRow(s.in.line, text)
		}
		if text == "" {
			continue
		}
		row.line, row.raw, row.fields = s.in.line, text, row.fields[:0]
		for {
			i := strings.IndexByte(text, '\t')
			if i < 0 {
				row.fields = append(row.fields, text)
				return nil
			}
			row.fields = append(row.fields, text[:i])
			text = text[i+1:]
		}
	}
}
