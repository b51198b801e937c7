package clients

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// index is what redis-cli puts before the items of an array: `2) `, nested `1) 1) `.
var index = regexp.MustCompile(`^(?:\s*\d+\) )+`)

// cliReplies turns what redis-cli --no-raw prints into one line of leaves a
// reply. A reply begins with every line but those that go on with an array:
// indented, or with an index of 2 or more.
func cliReplies(output string) ([]string, error) {
	var replies []string
	for line := range strings.Lines(output) {
		line = strings.TrimSuffix(line, "\n")
		number := index.FindString(line)
		leaf, err := cliLeaf(line[len(number):])
		if err != nil {
			return nil, err
		}
		if number == "" || strings.HasPrefix(number, "1) ") {
			if leaf == "" {
				leaf = "empty"
			}
			replies = append(replies, leaf)
			continue
		}
		if len(replies) == 0 {
			return nil, fmt.Errorf("redis-cli's output begins inside an array: %q", line)
		}
		replies[len(replies)-1] += " " + leaf
	}
	return replies, nil
}

func cliLeaf(text string) (string, error) {
	switch {
	case text == "(nil)":
		return "nil", nil
	case text == "(empty array)":
		return "", nil
	case strings.HasPrefix(text, "(error) "):
		return "!", nil
	case strings.HasPrefix(text, "(integer) "):
		return text[len("(integer) "):], nil
	case strings.HasPrefix(text, `"`):
		return strconv.Unquote(text)
	}
	return text, nil
}
