package wire

import (
	"errors"
	"net"
	"reflect"
	"testing"
)

// talk gives the replies to a Conn and returns it.
func talk(t *testing.T, replies string) *Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		conn.Write([]byte(replies))
		conn.Close()
	}()
	c, err := Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRead(t *testing.T) {
	for _, test := range []struct {
		reply string
		want  any
	}{
		{"+OK\r\n", "OK"},
		{":-7\r\n", int64(-7)},
		{"$-1\r\n", nil},
		{"$4\r\na\r\nb\r\n", "a\r\nb"},
		{"-ERR no\r\n", Error("ERR no")},
		{"*-1\r\n", nil},
		{"*3\r\n:1\r\n$-1\r\n*1\r\n+x\r\n", []any{int64(1), nil, []any{"x"}}},
	} {
		got, err := talk(t, test.reply).Read()
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("Read of %q = %v, %v; want %v", test.reply, got, err, test.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, reply := range []string{"", "hello\r\n", "$99999999999\r\n", "+OK\n", "$5\r\nab", "*2\r\n:1\r\n"} {
		if got, err := talk(t, reply).Read(); err == nil {
			t.Errorf("Read of %q = %v, want an error", reply, got)
		}
		if err := talk(t, reply).Skip(); err == nil {
			t.Errorf("Skip of %q succeeded, want an error", reply)
		}
	}
}

func TestSkip(t *testing.T) {
	c := talk(t, "*2\r\n-ERR first\r\n$3\r\nabc\r\n:1\r\n$-1\r\n")
	var reply Error
	if err := c.Skip(); !errors.As(err, &reply) || reply != "ERR first" {
		t.Errorf("Skip = %v, want ERR first", err)
	}
	for range 2 {
		if err := c.Skip(); err != nil {
			t.Errorf("Skip = %v", err)
		}
	}
}
