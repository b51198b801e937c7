package resp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tally-counter/tally/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openEngine(t testing.TB, o engine.Options) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return e
}

func newServer(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := New(openEngine(t, engine.Options{}), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bench is a connection without a socket: bytes in, bytes out.
type bench struct {
	t testing.TB
	c *conn
	o outbox
}

func newBench(t testing.TB, s *Server) *bench {
	b := &bench{t: t, c: s.newConn(new(scratch), "127.0.0.1:1", "127.0.0.1:2")}
	b.c.info.close = func() {}
	if !s.register(b.c) {
		t.Fatal("the server is full")
	}
	return b
}

// feed processes in as a transport does and returns what may be sent and what is
// left of in.
func (b *bench) feed(in []byte) (out, rest []byte) {
	b.t.Helper()
	for {
		n := b.c.process(in, b.c.server.opts.OutputBytesMax)
		in = in[n:]
		more := b.c.slow != nil
		if more {
			b.c.runSlow()
		}
		b.o.put(b.c)
		need := b.o.need()
		if err := b.c.engine.Wait(need); err != nil {
			b.t.Fatal(err)
		}
		b.o.show(max(need, b.c.engine.Durable()))
		r := b.o.ready(b.c)
		out = append(out, r...)
		b.o.wrote(b.c, len(r))
		if !more && n == 0 {
			return out, in
		}
	}
}

// do sends one command and returns its reply as text.
func (b *bench) do(args ...string) string {
	b.t.Helper()
	out, rest := b.feed(encode(args...))
	if len(rest) > 0 {
		b.t.Fatalf("%q leaves %d bytes unread", args, len(rest))
	}
	v, err := readReply(bufio.NewReader(bytes.NewReader(out)))
	if err != nil && !(err == io.EOF && len(out) == 0) {
		b.t.Fatalf("%q answers %q: %v", args, out, err)
	}
	return v.String()
}

// parse reads the one reply in out.
func parse(t testing.TB, out []byte) reply {
	t.Helper()
	v, err := readReply(bufio.NewReader(bytes.NewReader(out)))
	if err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return v
}

func encode(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// reply is one reply as read: its type and text, or its elements.
type reply struct {
	kind byte
	text string
	list []reply
}

func (r reply) String() string {
	switch r.kind {
	case 0:
		return "(nothing)"
	case '$', '+':
		return strconv.Quote(r.text)
	case ':':
		return r.text
	case '_':
		return "nil"
	case '*', '~', '%':
		parts := make([]string, len(r.list))
		for i, e := range r.list {
			parts[i] = e.String()
		}
		open := map[byte]string{'*': "[", '~': "~[", '%': "{"}[r.kind]
		return open + strings.Join(parts, " ") + map[byte]string{'*': "]", '~': "]", '%': "}"}[r.kind]
	}
	return string(r.kind) + r.text
}

// sorted orders the elements of a reply whose order means nothing, by pairs if
// it is flat pairs.
func (r reply) sorted(group int) reply {
	if r.kind == '%' {
		group = 2
	}
	var groups [][]reply
	for i := 0; i+group <= len(r.list); i += group {
		groups = append(groups, r.list[i:i+group])
	}
	sort.SliceStable(groups, func(i, j int) bool { return groups[i][0].String() < groups[j][0].String() })
	out := reply{kind: r.kind, text: r.text}
	for _, g := range groups {
		out.list = append(out.list, g...)
	}
	return out
}

func readReply(r *bufio.Reader) (reply, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return reply{}, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	v := reply{kind: line[0], text: line[1:]}
	switch v.kind {
	case '$', '=', '!':
		n, err := strconv.Atoi(v.text)
		if err != nil {
			return v, err
		}
		if n < 0 {
			return reply{kind: '_'}, nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return v, err
		}
		v.text = string(b[:n])
		if v.kind == '=' {
			v = reply{kind: '$', text: v.text[4:]}
		}
	case '*', '~', '%', '>':
		n, err := strconv.Atoi(v.text)
		if err != nil {
			return v, err
		}
		if n < 0 {
			return reply{kind: '_'}, nil
		}
		if v.kind == '%' {
			n *= 2
		}
		v.list = make([]reply, 0, min(n, 1<<16))
		for range n {
			e, err := readReply(r)
			if err != nil {
				return v, err
			}
			v.list = append(v.list, e)
		}
	}
	return v, nil
}

// start serves on a free port and returns its address.
func start(t testing.TB, s *Server) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close the server: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return ln.Addr().String()
}

// transports runs a test once with the system's best transport and once with the
// portable one.
func transports(t *testing.T, name string, test func(t *testing.T, o Options)) {
	t.Helper()
	for _, goroutines := range []bool{false, true} {
		t.Run(fmt.Sprintf("%s/goroutines=%v", name, goroutines), func(t *testing.T) { test(t, Options{Goroutines: goroutines}) })
	}
}

// peer is a client over a socket.
type peer struct {
	t  testing.TB
	nc net.Conn
	r  *bufio.Reader
}

func newBufReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 64<<10) }

// errReset is how a connection ends whose last bytes were not read.
var errReset = syscall.ECONNRESET

func dial(t testing.TB, addr string) *peer {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(60 * time.Second))
	return &peer{t, nc, newBufReader(nc)}
}

func (p *peer) send(b []byte) {
	p.t.Helper()
	if _, err := p.nc.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) read() reply {
	p.t.Helper()
	v, err := readReply(p.r)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

func (p *peer) do(args ...string) reply {
	p.t.Helper()
	p.send(encode(args...))
	return p.read()
}

// startRedis runs a real Redis on a free port.
func startRedis(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("redis-server is needed to compare with; on Debian: apt-get install redis-server")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	out := new(bytes.Buffer)
	ready := make(chan bool)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		told := false
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			fmt.Fprintln(out, lines.Text())
			if !told && strings.Contains(lines.Text(), "Ready to accept connections") {
				told = true
				close(ready)
			}
		}
		if !told {
			close(ready)
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-read
		cmd.Wait()
	})
	<-ready
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatalf("redis-server does not start: %v\n%s", err, out)
	}
	nc.Close()
	return addr
}
