package transfer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// jsonReader reads one JSON object a line (the "JSON Lines" convention). Strings
// and numbers are values; numbers keep the digits they are written with.
type jsonReader struct {
	in      *lines
	columns []string
	index   map[string]int
}

func (j *jsonReader) Read(row *Row) error {
	text := ""
	for strings.TrimSpace(text) == "" {
		line, tooLong, err := j.in.next()
		if err != nil {
			return err
		}
		text = chomp(line)
		if tooLong || len(text) > RowBytesMax {
			return tooLongRow(j.in.line, text)
		}
	}
	row.Line, row.Raw = j.in.line, text
	row.Fields, row.Has = row.Fields[:0], row.Has[:0]
	for range j.columns {
		row.Fields = append(row.Fields, "")
		row.Has = append(row.Has, false)
	}
	if reason := j.read(row, text); reason != "" {
		return &BadRow{Line: row.Line, Raw: row.Raw, Reason: reason}
	}
	return nil
}

func (j *jsonReader) read(row *Row, text string) (reason string) {
	if !utf8.ValidString(text) {
		return "it is not UTF-8" // the decoder would replace such bytes, and count for another object
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return "it is not a JSON object: " + err.Error()
	}
	if object == nil {
		return "it is not a JSON object: null"
	}
	for name, value := range object {
		i, wanted := j.index[name]
		if !wanted || bytes.Equal(value, []byte("null")) {
			continue
		}
		field, ok := scalar(value)
		if !ok {
			return fmt.Sprintf("%.64q is neither a number nor a valid string", name)
		}
		row.Fields[i], row.Has[i] = field, true
	}
	return ""
}

// scalar reads a string or a number.
func scalar(value json.RawMessage) (string, bool) {
	switch c := value[0]; {
	case c == '"':
		var s string
		if json.Unmarshal(value, &s) != nil {
			return "", false
		}
		// The decoder writes U+FFFD for half of a surrogate pair: another id than meant.
		return s, !strings.ContainsRune(s, utf8.RuneError) || bytes.ContainsRune(value, utf8.RuneError)
	case c == '-' || '0' <= c && c <= '9':
		return string(value), true
	}
	return "", false
}
