package transfer

import (
	"fmt"
	"strings"

	"github.com/tally-counter/tally/counter"
)

// template is text with columns in it: "{year}-{path}". "{{" stands for a brace.
type template struct {
	texts   []string // texts[i] stands before columns[i]; one more than columns
	columns []int    // positions in Row.Fields
}

// columnSet gathers the columns that a mapping needs, each once.
type columnSet []string

func (c *columnSet) add(name string) int {
	for i, have := range *c {
		if have == name {
			return i
		}
	}
	*c = append(*c, name)
	return len(*c) - 1
}

func parseTemplate(s string, columns *columnSet) (template, error) {
	var t template
	var text strings.Builder
	for rest := s; ; {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			text.WriteString(rest)
			t.texts = append(t.texts, text.String())
			return t, nil
		}
		text.WriteString(rest[:i])
		if strings.HasPrefix(rest[i:], "{{") {
			text.WriteByte('{')
			rest = rest[i+2:]
			continue
		}
		name, after, closed := strings.Cut(rest[i+1:], "}")
		if !closed || name == "" {
			return t, fmt.Errorf("template %q: a brace opens and names no column; write {column}, or {{ for a brace: %w", s, counter.ErrInvalid)
		}
		t.texts = append(t.texts, text.String())
		text.Reset()
		t.columns = append(t.columns, columns.add(name))
		rest = after
	}
}

// fill writes the template with a row's fields. ok is false when it lacks one.
func (t *template) fill(row *Row) (s string, ok bool) {
	if len(t.columns) == 1 && t.texts[0] == "" && t.texts[1] == "" {
		return row.Fields[t.columns[0]], row.Has[t.columns[0]]
	}
	var b strings.Builder
	for i, col := range t.columns {
		if !row.Has[col] {
			return "", false
		}
		b.WriteString(t.texts[i])
		b.WriteString(row.Fields[col])
	}
	b.WriteString(t.texts[len(t.columns)])
	return b.String(), true
}
