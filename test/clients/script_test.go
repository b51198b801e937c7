package clients

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestReadScript(t *testing.T) {
	file := filepath.Join(t.TempDir(), "script")
	text := "# a comment\n\nHGETALL post:1 ~> like 1 view 2\nPING => PONG\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	steps, err := readScript(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := commands(steps); got != "HGETALL post:1\nPING\n" {
		t.Errorf("commands = %q", got)
	}
	for _, test := range []struct {
		replies []string
		wrong   int
	}{
		{[]string{"view 2 like 1", "PONG"}, 0},
		{[]string{"view 2 like 1", "PING"}, 1},
		{[]string{"view 1 like 2 more 3", "PONG"}, 1},
		{[]string{"view 2 like 1"}, 1},
		{[]string{"view 2 like 1", "PONG", "PONG"}, 1},
	} {
		if wrong := check(steps, test.replies); len(wrong) != test.wrong {
			t.Errorf("check(%q) = %q, want %d complaints", test.replies, wrong, test.wrong)
		}
	}
	if err := os.WriteFile(file, []byte("PING PONG\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readScript(file); err == nil {
		t.Error("a line without a reply was accepted")
	}
}

func TestCLIReplies(t *testing.T) {
	output := "OK\n(nil)\n(integer) 5\n1) \"a\"\n2) (nil)\n1) 1) \"b\"\n   2) (integer) -2\n2) \"c d\"\n(empty array)\n(error) ERR no\n"
	want := []string{"OK", "nil", "5", "a nil", "b -2 c d", "empty", "!"}
	if got, err := cliReplies(output); err != nil || !slices.Equal(got, want) {
		t.Errorf("cliReplies = %q, %v; want %q", got, err, want)
	}
}
