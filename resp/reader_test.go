package resp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand"
	"strings"
	"testing"
)

func newReader() *reader {
	return &reader{limits: &limits{request: 1 << 20, args: 1 << 10, bulk: 64 << 10, inline: 4 << 10}, words: new(words)}
}

func TestReader(t *testing.T) {
	long := strings.Repeat("x", 5<<10)
	for _, c := range []struct {
		in   string
		want string // arguments as %q, or the error
		left int
	}{
		{"*1\r\n$4\r\nPING\r\n", `["PING"]`, 0},
		{"*2\r\n$3\r\nGET\r\n$0\r\n\r\nrest", `["GET" ""]`, 4},
		{"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n", `["GET" "a\r\n"]`, 0},
		{"*0\r\n", `[]`, 0},
		{"*-1\r\n", `[]`, 0},
		{"PING\r\n", `["PING"]`, 0},
		{"PING\n", `["PING"]`, 0},
		{"\r\n", `[]`, 0},
		{"  SET  a\t5 \r\n", `["SET" "a" "5"]`, 0},
		{`SET "a b" '5' "\x41\n\"" ''` + "\r\n", `["SET" "a b" "5" "A\n\"" ""]`, 0},
		{`SET 'it\'s' a"b c"` + "\r\n", `["SET" "it's" "ab c"]`, 0},
		{`SET "a` + "\r\n", "Protocol error: unbalanced quotes in request", 0},
		{`SET "a"b` + "\r\n", "Protocol error: unbalanced quotes in request", 0},
		{"*a\r\n", "Protocol error: invalid multibulk length", 0},
		{"*\r\n", "Protocol error: invalid multibulk length", 0},
		{"*1025\r\n", "Protocol error: invalid multibulk length", 0},
		{"*99999999999999999999\r\n", "Protocol error: invalid multibulk length", 0},
		{"*1\rx", "Protocol error: invalid multibulk length", 0},
		{"*1\r\nPING\r\n", "Protocol error: expected '$', got 'P'", 0},
		{"*1\r\n$-1\r\n", "Protocol error: invalid bulk length", 0},
		{"*1\r\n$65537\r\n", "Protocol error: invalid bulk length", 0},
		{"*1\r\n$4\r\nPINGXX", "Protocol error: expected a line end after the bytes of a bulk string", 0},
		{long, "Protocol error: too big inline request", 0},
		{"*1\r\n$4\r\nPIN", "incomplete", 0},
		{"*1\r\n$4", "incomplete", 0},
		{"*1\r", "incomplete", 0},
		{"*", "incomplete", 0},
		{"PIN", "incomplete", 0},
	} {
		args, n, err := newReader().next([]byte(c.in))
		got := fmt.Sprintf("%q", args)
		switch {
		case err != nil:
			got = err.Error()
		case n == 0:
			got = "incomplete"
		case len(c.in)-n != c.left:
			t.Errorf("%.40q: %d bytes are left, want %d", c.in, len(c.in)-n, c.left)
		}
		if got != c.want {
			t.Errorf("%.40q reads %s, want %s", c.in, got, c.want)
		}
	}
}

// A request may be as large as its limit, and no larger, however it declares itself.
func TestReaderBoundsRequests(t *testing.T) {
	r := newReader()
	var in []byte
	in = append(in, "*1000\r\n"...)
	for range 1000 {
		in = fmt.Appendf(in, "$60000\r\n%s\r\n", strings.Repeat("x", 60000))
		if _, n, err := r.next(in); err != nil {
			if len(in) < 1<<20 {
				t.Fatalf("refused at %d bytes: %v", len(in), err)
			}
			return
		} else if n > 0 {
			t.Fatal("taken")
		}
	}
	t.Fatal("60 MB are taken, the limit is 1 MiB")
}

// Feeding a large request byte by byte must not cost the square of its size:
// the reader goes on where it stopped.
func TestReaderResumes(t *testing.T) {
	args := make([]string, 1000)
	for i := range args {
		args[i] = strings.Repeat("v", 60)
	}
	in := encode(args...)
	r := newReader()
	for i := 1; i < len(in); i++ {
		if _, n, err := r.next(in[:i]); n != 0 || err != nil {
			t.Fatalf("%d of %d bytes: %d, %v", i, len(in), n, err)
		}
		if i > 2*resumeBytes && r.pos < i-100 {
			t.Fatalf("after %d bytes only %d are understood", i, r.pos)
		}
	}
	got, n, err := r.next(in)
	if n != len(in) || err != nil || len(got) != len(args) || string(got[999]) != args[999] {
		t.Fatalf("%d arguments, %d bytes, %v", len(got), n, err)
	}
	if _, n, _ := r.next(encode("PING")); n != len(encode("PING")) {
		t.Fatal("the next request is not read")
	}
}

func TestParseInt(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "7": "7", "-7": "-7", "9223372036854775807": "9223372036854775807", "-9223372036854775808": "-9223372036854775808",
		"9223372036854775808": "no", "-9223372036854775809": "no", "99999999999999999999": "no", "": "no", "-": "no", "+1": "no", "01": "no", "-0": "no",
		" 1": "no", "1 ": "no", "1.0": "no", "0x1": "no", "1e3": "no", "--1": "no",
	} {
		n, ok := parseInt([]byte(in))
		got := fmt.Sprint(n)
		if !ok {
			got = "no"
		}
		if got != want {
			t.Errorf("%q reads %s, want %s", in, got, want)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true}, {"", "", true}, {"", "a", false}, {"a*", "abc", true}, {"*c", "abc", true}, {"a*c", "abbbc", true}, {"a*c", "ab", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"[abc]", "b", true}, {"[^abc]", "b", false}, {"[^abc]", "d", true}, {"[a-c]x", "bx", true}, {"[c-a]x", "bx", true},
		{`\*`, "*", true}, {`\*`, "a", false}, {`[\]]`, "]", true}, {"[abc", "c", true}, {"a**b", "ab", true}, {"*a*b*", "xxaxxbxx", true}, {"*a*b*", "xxbxxaxx", false}, {`a\`, `a\`, true},
	} {
		if got := glob(c.pattern, c.s); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.s, got)
		}
	}
	glob(strings.Repeat("*a", 500)+"b", strings.Repeat("a", 5000)) // ends soon
}

// FuzzReader reads any bytes in any pieces: they may be refused, but the pieces
// make no difference.
func FuzzReader(f *testing.F) {
	for _, args := range hotRequests {
		f.Add(encode(args...), int64(1))
	}
	f.Add([]byte("*1000000000\r\n$1000000000\r\n"), int64(2))
	f.Add([]byte("SET a \"5\"\r\nGET a\r\nMULTI\r\nINCR a\r\nEXEC\r\n"), int64(3))
	f.Add([]byte("*-1\r\n*0\r\n\r\n\n*1\r\n$0\r\n\r\n"), int64(4))
	f.Fuzz(func(t *testing.T, in []byte, seed int64) {
		whole := newReader()
		pieces := newReader()
		r := rand.New(rand.NewSource(seed))
		var have []byte
		rest := in
		for {
			want, n, err := whole.next(in)
			if n > len(in) || (n == 0 && len(want) > 0) {
				t.Fatalf("%d of %d bytes are taken", n, len(in))
			}
			want = clone(want)
			for {
				got, m, errPieces := pieces.next(have)
				if m > 0 {
					if err != nil || m != n || !equalArgs(got, want) {
						t.Fatalf("in pieces: %q, %d bytes; whole: %q, %d bytes, %v", got, m, want, n, err)
					}
					have = append([]byte(nil), have[m:]...)
					break
				}
				if errPieces != nil {
					if err == nil {
						t.Fatalf("in pieces: %v; whole: %q", errPieces, want)
					}
					break
				}
				if len(rest) == 0 {
					if n > 0 || err != nil {
						t.Fatalf("in pieces: incomplete; whole: %q, %d bytes, %v", want, n, err)
					}
					break
				}
				k := 1 + r.Intn(min(len(rest), 64))
				have = append(have, rest[:k]...)
				rest = rest[k:]
			}
			if n == 0 {
				break
			}
			in = in[n:]
		}
	})
}

// FuzzProcess runs any bytes as requests.
func FuzzProcess(f *testing.F) {
	for _, c := range comparisons {
		f.Add(encode(splitCommand(c.command)...))
	}
	for _, args := range hotRequests {
		f.Add(encode(args...))
	}
	s := newServer(f, Options{OutputBytesMax: 64 << 10})
	f.Cleanup(s.tasks.Wait)
	f.Fuzz(func(t *testing.T, in []byte) {
		b := newBench(t, s)
		defer s.forget(b.c)
		out, _ := b.feed(in)
		for r := bufio.NewReader(bytes.NewReader(out)); ; {
			if _, err := readReply(r); err == io.EOF {
				return
			} else if err != nil {
				t.Fatalf("%q is answered %q: %v", in, out, err)
			}
		}
	})
}

func equalArgs(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
