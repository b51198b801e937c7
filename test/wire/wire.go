// Package wire is the smallest useful Redis client: it writes commands and reads
// RESP2 replies, and does nothing behind the caller's back. Load generators and
// the crash suite need that: no pool, no retry, no reply they did not ask for.
// It is not for applications; those have real clients. A Conn belongs to one
// goroutine.
package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// Error is an error reply, with its prefix: "ERR unknown command …".
type Error string

func (e Error) Error() string { return string(e) }

// bulkBytesMax bounds what a reply may make us allocate.
const bulkBytesMax = 64 << 20

// Conn is one connection.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte // commands queued by Append
}

// Dial connects to addr within a second.
func Dial(addr string) (*Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// Close closes the connection. It may be called by another goroutine to end a
// Read or Flush that waits.
func (c *Conn) Close() error { return c.conn.Close() }

// Deadline bounds all later reads and writes; the zero time lifts it.
func (c *Conn) Deadline(t time.Time) error { return c.conn.SetDeadline(t) }

// Append queues one command.
func (c *Conn) Append(args ...string) {
	c.Begin(len(args))
	for _, arg := range args {
		c.Arg(arg)
	}
}

// Begin queues the head of a command of n arguments; n calls of Arg, ArgInt or
// ArgBytes follow. This way a long command needs no slice of strings.
func (c *Conn) Begin(n int) {
	c.out = append(c.out, '*')
	c.out = strconv.AppendInt(c.out, int64(n), 10)
	c.out = append(c.out, "\r\n"...)
}

// Arg queues one argument.
func (c *Conn) Arg(s string) {
	c.head(len(s))
	c.out = append(c.out, s...)
	c.out = append(c.out, "\r\n"...)
}

// ArgBytes queues one argument.
func (c *Conn) ArgBytes(b []byte) {
	c.head(len(b))
	c.out = append(c.out, b...)
	c.out = append(c.out, "\r\n"...)
}

// ArgInt queues n in decimal as one argument.
func (c *Conn) ArgInt(n int64) {
	var digits [20]byte
	c.ArgBytes(strconv.AppendInt(digits[:0], n, 10))
}

func (c *Conn) head(n int) {
	c.out = append(c.out, '$')
	c.out = strconv.AppendInt(c.out, int64(n), 10)
	c.out = append(c.out, "\r\n"...)
}

// Flush sends what is queued.
func (c *Conn) Flush() error {
	_, err := c.conn.Write(c.out)
	c.out = c.out[:0]
	return err
}

// Do sends one command and reads its reply. An error reply is the error.
func (c *Conn) Do(args ...string) (any, error) {
	c.Append(args...)
	if err := c.Flush(); err != nil {
		return nil, err
	}
	v, err := c.Read()
	if err != nil {
		return nil, err
	}
	if e, ok := v.(Error); ok {
		return nil, e
	}
	return v, nil
}

// Read reads one reply: int64, string, nil, Error, or []any of these. The error
// is the connection's; an error reply is a value.
func (c *Conn) Read() (any, error) {
	line, err := c.line()
	if err != nil {
		return nil, err
	}
	switch line[0] {
	case '+':
		return string(line[1:]), nil
	case '-':
		return Error(line[1:]), nil
	case ':':
		return strconv.ParseInt(string(line[1:]), 10, 64)
	case '$':
		n, err := length(line)
		if err != nil || n < 0 {
			return nil, err
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(c.in, b); err != nil {
			return nil, err
		}
		return string(b[:n]), nil
	case '*':
		n, err := length(line)
		if err != nil || n < 0 {
			return nil, err
		}
		var items []any
		for range n {
			item, err := c.Read()
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return items, nil
	}
	return nil, fmt.Errorf("wire: a reply begins with %q, which is not RESP2", line)
}

// Skip reads one reply and forgets it. It returns an Error when the reply, or a
// reply inside it, is an error.
func (c *Conn) Skip() error {
	line, err := c.line()
	if err != nil {
		return err
	}
	switch line[0] {
	case '+', ':':
		return nil
	case '-':
		return Error(line[1:])
	case '$':
		n, err := length(line)
		if err != nil || n < 0 {
			return err
		}
		_, err = c.in.Discard(n + 2)
		return err
	case '*':
		n, err := length(line)
		if err != nil {
			return err
		}
		var first error
		for range n {
			err := c.Skip()
			var reply Error
			if err != nil && !errors.As(err, &reply) {
				return err
			}
			if first == nil {
				first = err
			}
		}
		return first
	}
	return fmt.Errorf("wire: a reply begins with %q, which is not RESP2", line)
}

// line returns the next line without its end, at least one byte. It is valid
// until the next read.
func (c *Conn) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("wire: line %q is not RESP", line)
	}
	return line[:len(line)-2], nil
}

func length(line []byte) (int, error) {
	n, err := strconv.Atoi(string(line[1:]))
	if err == nil && n > bulkBytesMax {
		err = fmt.Errorf("wire: a reply announces %d bytes or items, the limit is %d", n, bulkBytesMax)
	}
	return n, err
}
