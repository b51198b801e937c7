package transfer

import (
	"errors"
	"strings"
	"testing"

	"github.com/tally-counter/tally/counter"
)

func TestMappingCheck(t *testing.T) {
	for name, c := range map[string]struct {
		m    Mapping
		want string // part of the error; "": none
	}{
		"no id":             {Mapping{Counter: "v"}, "--id COLUMN"},
		"no counter":        {Mapping{ID: "a"}, "--counter NAME"},
		"two counters":      {Mapping{ID: "a", Counter: "v", CounterColumn: "c"}, "give one"},
		"constant":          {Mapping{ID: "a", Counter: "v", Amounts: []string{"-3"}}, ""},
		"columns":           {Mapping{ID: "a", Amounts: []string{"likes", "views"}}, ""},
		"columns and name":  {Mapping{ID: "a", Counter: "v", Amounts: []string{"likes", "views"}}, "counters of their own names"},
		"values as default": {Mapping{Kind: Values}, ""},
		"values with token": {Mapping{Kind: Values, Token: "t"}, "need no tokens"},
		"long counter":      {Mapping{ID: "a", Counter: strings.Repeat("x", 65)}, "65 bytes"},
		"bad namespace":     {Mapping{ID: "a", Counter: "v", Namespace: "{a"}, "brace"},
		"open template":     {Mapping{ID: "a{b", Counter: "v"}, "a brace opens"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newRule(c.m)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, counter.ErrInvalid)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestItem(t *testing.T) {
	row := func(fields ...string) *Row {
		r := &Row{Line: 7, Fields: fields}
		for _, f := range fields {
			r.Has = append(r.Has, f != "(none)")
		}
		return r
	}
	for name, c := range map[string]struct {
		m      Mapping
		row    *Row // fields in the order: id's columns, counter, amounts, token
		want   string
		reason string
	}{
		"event":           {Mapping{ID: "path", Counter: "view"}, row("/a:b"), "default /a:b view+1", ""},
		"integer id":      {Mapping{ID: "path", Counter: "view"}, row("1001"), "default 1001 view+1", ""},
		"template":        {Mapping{ID: "{y}-{{{p}}", Counter: "v"}, row("24", "x"), "default 24-{x} v+1", ""},
		"counter column":  {Mapping{ID: "p", CounterColumn: "c", Amounts: []string{"n"}}, row("x", "likes", "-5"), "default x likes+-5", ""},
		"several":         {Mapping{ID: "p", Amounts: []string{"a", "b", "c"}}, row("x", "1", "", "3"), "default x a+1 c+3", ""},
		"none of several": {Mapping{ID: "p", Amounts: []string{"a", "b"}}, row("x", "", ""), "", "every number is missing"},
		"no number":       {Mapping{ID: "p", Counter: "v", Amounts: []string{"n"}}, row("x", "five"), "", `n "five" is not a whole number within 64 bits`},
		"too large":       {Mapping{ID: "p", Counter: "v", Amounts: []string{"n"}}, row("x", "9223372036854775808"), "", `n "9223372036854775808" is not a whole number within 64 bits`},
		"empty id":        {Mapping{ID: "p", Counter: "v"}, row(""), "", "the id is missing"},
		"empty id wanted": {Mapping{ID: "p", Counter: "v", EmptyID: true}, row(""), "default  v+1", ""},
		"missing id":      {Mapping{ID: "p", Counter: "v", EmptyID: true}, row("(none)"), "", "the id is missing"},
		"long id":         {Mapping{ID: "p", Counter: "v"}, row(strings.Repeat("x", 513)), "", "the id has 513 bytes, the limit is 512"},
		"no counter":      {Mapping{ID: "p", CounterColumn: "c"}, row("x", ""), "", "the counter's name is missing"},
		"token":           {Mapping{ID: "p", Counter: "v", Token: "t"}, row("x", "abc"), "default x v+1 abc", ""},
		"no token":        {Mapping{ID: "p", Counter: "v", Token: "t"}, row("x", ""), "", "the token is missing"},
		"long token":      {Mapping{ID: "p", Counter: "v", Token: "t"}, row("x", strings.Repeat("t", 65)), "", "the token has 65 bytes, the limit is 64"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newRule(c.m)
			if err != nil {
				t.Fatal(err)
			}
			it, reason := r.item(c.row)
			if reason != c.reason {
				t.Fatalf("reason %q, want %q", reason, c.reason)
			}
			if reason == "" && describe(it) != c.want {
				t.Errorf("got %q, want %q", describe(it), c.want)
			}
		})
	}
}

func describe(it Item) string {
	s := it.Key.Namespace + " " + it.Key.ID.String()
	for _, d := range it.Deltas {
		s += " " + d.Counter + "+" + itoa(d.By)
	}
	if it.Token != "" {
		s += " " + it.Token
	}
	return s
}
