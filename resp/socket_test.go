package resp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tally-counter/tally/engine"
	"github.com/tally-counter/tally/journal"
)

// Any split of the input gives the same replies.
func TestAnySplitGivesTheSameReplies(t *testing.T) {
	var in []byte
	for _, c := range comparisons {
		args := splitCommand(c.command)
		if strings.Contains(c.command, "RAND") || args[0] == "CLIENT" || args[0] == "HELLO" || args[0] == "RESET" {
			continue // random, or names the connection
		}
		in = append(in, encode(args...)...)
	}
	transports(t, "", func(t *testing.T, o Options) {
		whole, _ := newBench(t, newServer(t, o)).feed(in)
		seed := rand.Int63()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewSource(seed))
		p := dial(t, start(t, newServer(t, o)))
		go func() {
			for rest := in; len(rest) > 0; {
				n := 1 + r.Intn(min(200, len(rest)))
				p.nc.Write(rest[:n])
				rest = rest[n:]
			}
		}()
		got := make([]byte, len(whole))
		if _, err := io.ReadFull(p.r, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, whole) {
			for i := range got {
				if got[i] != whole[i] {
					t.Fatalf("they part at byte %d: %q, whole %q", i, got[max(0, i-50):i+20], whole[max(0, i-50):i+20])
				}
			}
		}
	})
}

func TestLongPipeline(t *testing.T) {
	const n = 100_000
	transports(t, "", func(t *testing.T, o Options) {
		p := dial(t, start(t, newServer(t, o)))
		in := bytes.Repeat(encode("INCR", "page"), n)
		go p.nc.Write(append(in, encode("KEYS", "*")...)) // a slow command at the end keeps its place
		for i := 1; i <= n; i++ {
			if v := p.read(); v.String() != fmt.Sprint(i) {
				t.Fatalf("reply %d is %s", i, v)
			}
		}
		if v := p.read(); v.String() != `["page"]` {
			t.Fatalf("KEYS answers %s", v)
		}
	})
}

// Many connections count at once; nothing is lost and replies stay in order.
func TestManyConnections(t *testing.T) {
	const conns, rounds, depth = 50, 40, 16
	transports(t, "", func(t *testing.T, o Options) {
		o.Loops = 2
		addr := start(t, newServer(t, o))
		var wg sync.WaitGroup
		for i := range conns {
			wg.Go(func() {
				nc, err := net.Dial("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				defer nc.Close()
				p := &peer{t: t, nc: nc, r: newBufReader(nc)}
				own := fmt.Sprintf("own:%d", i)
				for round := range rounds {
					var in []byte
					for range depth {
						in = append(in, encode("INCR", own)...)
						in = append(in, encode("INCR", "all")...)
					}
					in = append(in, encode("DBSIZE")...)
					if _, err := nc.Write(in); err != nil {
						t.Error(err)
						return
					}
					for j := range depth {
						v, err := readReply(p.r)
						if want := fmt.Sprint(round*depth + j + 1); err != nil || v.text != want {
							t.Errorf("%s: %s, %v, want %s", own, v, err, want)
							return
						}
						readReply(p.r)
					}
					readReply(p.r)
				}
			})
		}
		wg.Wait()
		if v := dial(t, addr).do("GET", "all"); v.text != fmt.Sprint(conns*rounds*depth) {
			t.Fatalf("all is %s, want %d", v, conns*rounds*depth)
		}
	})
}

// Transactions that move counts between objects never show a sum that is off.
func TestTransactionsAreAtomic(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		o.Loops = 2
		addr := start(t, newServer(t, o))
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				nc, err := net.Dial("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				defer nc.Close()
				r := newBufReader(nc)
				for n := range 200 {
					var in []byte
					for _, c := range []string{"MULTI", fmt.Sprintf("DECRBY from %d", n), fmt.Sprintf("INCRBY to %d", n), "MGET from to", "EXEC"} {
						in = append(in, encode(splitCommand(c)...)...)
					}
					nc.Write(in)
					var v reply
					for range 5 {
						if v, err = readReply(r); err != nil {
							t.Errorf("connection %d: %v", i, err)
							return
						}
					}
					if pair := v.list[2].list; pair[0].text != "-"+pair[1].text && pair[0].text+pair[1].text != "00" {
						t.Errorf("from is %s and to is %s", pair[0], pair[1])
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

// A watched object that another connection changed stops EXEC.
func TestWatchAcrossConnections(t *testing.T) {
	addr := start(t, newServer(t, Options{}))
	a, b := dial(t, addr), dial(t, addr)
	for _, c := range []struct{ change, want string }{
		{"GET w", "[\"OK\"]"}, {"INCR w", "nil"}, {"EXPIRE w 100", "nil"}, {"HINCRBY w x 0", "nil"}, {"HEXPIRE w 100 FIELDS 1 x", "nil"}, {"DEL w", "nil"}, {"DEL none", "[\"OK\"]"}, {"GET w", "[\"OK\"]"},
	} {
		a.do("WATCH", "w")
		b.do(splitCommand(c.change)...)
		a.do("MULTI")
		a.do("SET", "w", "1")
		if got := a.do("EXEC").String(); got != c.want {
			t.Errorf("after %s EXEC answers %s, want %s", c.change, got, c.want)
		}
		b.do("SET", "w", "1")
	}
}

func TestProtocolErrorsEndTheConnection(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		addr := start(t, newServer(t, o))
		for in, want := range map[string]string{
			"*1\r\n$4\r\nPING\r\n*x\r\n":                 "+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n",
			"*1000000000\r\n":                            "-ERR Protocol error: invalid multibulk length\r\n",
			"*1\r\n$1000000000\r\n":                      "-ERR Protocol error: invalid bulk length\r\n",
			"*1\r\n:4\r\n":                               "-ERR Protocol error: expected '$', got ':'\r\n",
			strings.Repeat("x", 100_000):                 "-ERR Protocol error: too big inline request\r\n",
			"PING \"\r\n":                                "-ERR Protocol error: unbalanced quotes in request\r\n",
			"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n": "-ERR unknown command 'POST': Tally serves counters; see TALLY.HELP for what it serves\r\n",
			"QUIT\r\nPING\r\n":                           "+OK\r\n",
		} {
			p := dial(t, addr)
			p.send([]byte(in))
			got, err := io.ReadAll(p.r)
			if string(got) != want && !errors.Is(err, errReset) {
				t.Errorf("%.40q is answered %q, %v", in, got, err)
			}
		}
	})
}

func TestPassword(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		o.Password = "secret"
		addr := start(t, newServer(t, o))
		p := dial(t, addr)
		for _, s := range []step{
			{"GET a", "-NOAUTH Authentication required."}, {"NOPE", "-NOAUTH Authentication required."}, {"HELLO 3", "-NOAUTH HELLO must be called…"}, {"AUTH wrong", "-WRONGPASS …"}, {"AUTH bob secret", "-WRONGPASS …"}, {"HELLO 2 AUTH default wrong", "-WRONGPASS …"},
			{"AUTH secret", `"OK"`}, {"GET a", "nil"}, {"RESET", `"RESET"`}, {"GET a", "-NOAUTH …"}, {"AUTH default secret", `"OK"`}, {"RESET", `"RESET"`}, {"HELLO 2 AUTH default secret SETNAME me", "[…"}, {"CLIENT GETNAME", `"me"`}, {"CLIENT LIST", "…"},
		} {
			if got := p.do(splitCommand(s.command)...).String(); got != s.want && !(strings.HasSuffix(s.want, "…") && strings.HasPrefix(got, strings.TrimSuffix(s.want, "…"))) {
				t.Errorf("%s answers %s, want %s", s.command, got, s.want)
			}
		}
		for _, in := range []string{"*11\r\n", "*1\r\n$20000\r\n"} {
			p := dial(t, addr)
			p.send([]byte(in))
			if got, _ := io.ReadAll(p.r); !strings.HasPrefix(string(got), "-ERR Protocol error: unauthenticated") {
				t.Errorf("%q before AUTH is answered %q", in, got)
			}
		}
	})
}

func TestConnectionLimit(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		o.ConnectionsMax = 2
		addr := start(t, newServer(t, o))
		a, b := dial(t, addr), dial(t, addr)
		a.do("PING")
		b.do("PING")
		if got, err := io.ReadAll(dial(t, addr).r); string(got) != tooManyConnections {
			t.Fatalf("the third connection is told %q, %v", got, err)
		}
		if v := a.do("PING"); v.text != "PONG" {
			t.Fatal(v)
		}
	})
}

func TestClientKillAndList(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		addr := start(t, newServer(t, o))
		a, b := dial(t, addr), dial(t, addr)
		b.do("CLIENT", "SETNAME", "victim")
		id := b.do("CLIENT", "ID").text
		if list := a.do("CLIENT", "LIST").text; strings.Count(list, "\n") != 2 || !strings.Contains(list, "name=victim") {
			t.Errorf("CLIENT LIST: %s", list)
		}
		if v := a.do("CLIENT", "KILL", "ID", id); v.text != "1" {
			t.Errorf("CLIENT KILL answers %s", v)
		}
		if _, err := b.r.ReadByte(); err == nil {
			t.Error("the killed connection lives")
		}
		if v := a.do("CLIENT", "KILL", "ID", a.do("CLIENT", "ID").text, "SKIPME", "no"); v.text != "1" {
			t.Errorf("CLIENT KILL of itself answers %s", v)
		}
		if _, err := a.r.ReadByte(); err == nil {
			t.Error("the connection that killed itself lives")
		}
	})
}

func TestClientReply(t *testing.T) {
	p := dial(t, start(t, newServer(t, Options{})))
	for _, c := range []string{"CLIENT REPLY SKIP", "INCR a", "INCR a", "CLIENT REPLY OFF", "INCR a", "CLIENT REPLY SKIP", "INCR a", "NOPE", "CLIENT REPLY ON", "INCR a"} {
		p.send(encode(splitCommand(c)...))
	}
	for _, want := range []string{"2", `"OK"`, "5"} {
		if got := p.read().String(); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// A client that reads nothing is not read from either, and ends.
func TestSlowReaderIsClosed(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		o.OutputBytesMax, o.SlowTimeout = 256<<10, 1500*time.Millisecond
		s := newServer(t, o)
		p := dial(t, start(t, s))
		in := bytes.Repeat(encode("ECHO", strings.Repeat("x", 10_000)), 100)
		sent := 0
		for sent < 1<<30 {
			n, err := p.nc.Write(in)
			sent += n
			if err != nil {
				break
			}
		}
		if sent >= 1<<30 {
			t.Fatal("a gigabyte was taken from a client that reads nothing")
		}
		if n := s.buffered.Load(); n > 16<<20 {
			t.Errorf("%d bytes were buffered for it", n)
		}
	})
}

// Replies that a client reads late all arrive, although they outgrow the limit.
func TestPatientReaderGetsEverything(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		o.OutputBytesMax = 64 << 10
		p := dial(t, start(t, newServer(t, o)))
		const n = 3000
		text := strings.Repeat("x", 5000)
		go p.nc.Write(bytes.Repeat(encode("ECHO", text), n))
		for i := range n {
			if v := p.read(); v.text != text {
				t.Fatalf("reply %d is %.40s", i, v)
			}
		}
	})
}

// All connections together hold a bounded number of bytes.
func TestBufferedBytesAreBounded(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		o.BufferedBytesMax = 1 << 20
		s := newServer(t, o)
		addr := start(t, s)
		closed := false
		for range 16 {
			p := dial(t, addr)
			p.send([]byte("*100\r\n"))
			for range 4 {
				if _, err := p.nc.Write(fmt.Appendf(nil, "$60000\r\n%s\r\n", strings.Repeat("x", 60000))); err != nil {
					closed = true
				}
			}
			if s.buffered.Load() > 2<<20 {
				t.Fatalf("%d bytes are buffered", s.buffered.Load())
			}
		}
		p := dial(t, addr)
		if v := p.do("PING"); v.text != "PONG" {
			t.Fatal(v)
		}
		if n := strings.Count(p.do("CLIENT", "LIST").text, "\n"); n >= 17 && !closed {
			t.Fatalf("%d connections are still open", n)
		}
	})
}

func TestIdleTimeout(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		o.IdleTimeout = time.Second
		p := dial(t, start(t, newServer(t, o)))
		p.do("PING")
		if _, err := p.r.ReadByte(); err == nil {
			t.Fatal("an idle connection lives")
		}
	})
}

func TestTransactionLimits(t *testing.T) {
	b := newBench(t, newServer(t, Options{}))
	b.do("MULTI")
	in := bytes.Repeat(encode("PING"), queuedMax+1)
	out, _ := b.feed(in)
	if !strings.HasSuffix(string(out), "bytes; split it\r\n") {
		t.Fatalf("…%q", out[len(out)-100:])
	}
	run(t, b, []step{{"EXEC", "-EXECABORT …"}})
	args := []string{"WATCH"}
	for i := range watchedMax + 1 {
		args = append(args, fmt.Sprint(i))
	}
	if got := b.do(args...); !strings.HasPrefix(got, "-ERR a connection may watch") {
		t.Error(got)
	}
	// A long queue runs beside the loop and its reply is in place.
	b.do("MULTI")
	b.feed(bytes.Repeat(encode("INCR", "n"), 5000))
	out, _ = b.feed(append(encode("EXEC"), encode("GET", "n")...))
	if !strings.HasPrefix(string(out), "*5000\r\n:1\r\n") || !strings.HasSuffix(string(out), ":5000\r\n$4\r\n5000\r\n") {
		t.Fatalf("%.20q … %q", out, out[len(out)-30:])
	}
}

// Close answers what was taken and leaves nothing running; goleak looks after
// the second part.
func TestCloseSendsWhatWasAnswered(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		s := newServer(t, o)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- s.Serve(ln) }()
		p := dial(t, ln.Addr().String())
		p.do("PING")
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if _, err := p.r.ReadByte(); err == nil {
			t.Fatal("the connection outlives the server")
		}
		if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			t.Fatal("a connection is taken after Close")
		}
		if ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(ln); err != nil {
			t.Fatalf("Serve after Close: %v", err)
		}
	})
}

func TestShutdown(t *testing.T) {
	stopped := make(chan bool, 1)
	s := newServer(t, Options{Shutdown: func() { stopped <- true }})
	p := dial(t, start(t, s))
	if v := p.do("SHUTDOWN", "FOO"); v.kind != '-' {
		t.Error(v)
	}
	p.send(encode("SHUTDOWN", "NOSAVE"))
	if !<-stopped {
		t.Error("not stopped")
	}
	far := newBench(t, s)
	far.c.info.remote = "10.0.0.1:5"
	run(t, far, []step{{"SHUTDOWN", "-ERR SHUTDOWN is taken from this machine only…"}})
}

// failingFS is a disk whose syncs fail from a moment on.
type failingFS struct {
	journal.FS
	mu     sync.Mutex
	failed bool
}

type failingFile struct {
	journal.File
	fs *failingFS
}

func (f *failingFS) Create(name string) (journal.File, error) {
	file, err := f.FS.Create(name)
	return &failingFile{file, f}, err
}

func (f *failingFS) Open(name string) (journal.File, error) {
	file, err := f.FS.Open(name)
	return &failingFile{file, f}, err
}

func (f *failingFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.fs.failed {
		return errors.New("input/output error")
	}
	return f.File.Sync()
}

// When the disk fails a write is never answered as done: each held reply becomes
// UNKNOWN, later writes are refused, and reads of what is on disk go on.
func TestFailedDisk(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		fs := &failingFS{FS: journal.OS}
		e, err := engine.Open(t.TempDir(), engine.Options{JournalFS: fs})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close() // fails, as the disk does
		s, err := New(e, o)
		if err != nil {
			t.Fatal(err)
		}
		p := dial(t, start(t, s))
		if v := p.do("INCR", "safe"); v.text != "1" {
			t.Fatal(v)
		}
		fs.mu.Lock()
		fs.failed = true
		fs.mu.Unlock()
		p.send(append(encode("INCR", "lost"), encode("GET", "lost")...))
		for range 2 {
			if v := p.read(); !strings.HasPrefix(v.String(), "-UNKNOWN ") {
				t.Errorf("on a failed disk INCR and GET of it answer %s", v)
			}
		}
		if v := p.do("INCR", "later"); !strings.HasPrefix(v.String(), "-UNAVAILABLE ") {
			t.Errorf("later INCR answers %s", v)
		}
		if v := p.do("GET", "safe"); v.text != "1" {
			t.Errorf("GET of what is on disk answers %s", v)
		}
		p.send(append(encode("GET", "lost"), encode("MULTI")...)) // MULTI's reply is lost, so the connection ends
		rest, _ := io.ReadAll(p.r)
		if strings.Count(string(rest), "-UNKNOWN ") != 2 {
			t.Errorf("GET and MULTI answer %q", rest)
		}
	})
}

// gateFS is a disk whose syncs wait until the gate is opened.
type gateFS struct {
	journal.FS
	mu   sync.Mutex
	gate chan struct{} // closed: open
}

type gateFile struct {
	journal.File
	fs *gateFS
}

func (f *gateFS) Create(name string) (journal.File, error) {
	file, err := f.FS.Create(name)
	return &gateFile{file, f}, err
}

func (f *gateFS) Open(name string) (journal.File, error) {
	file, err := f.FS.Open(name)
	return &gateFile{file, f}, err
}

func (f *gateFile) Sync() error {
	f.fs.mu.Lock()
	gate := f.fs.gate
	f.fs.mu.Unlock()
	<-gate
	return f.File.Sync()
}

// While a slow disk keeps writes waiting, what is on disk is still read, on the
// same loop; the replies of a connection keep their order.
func TestReadsGoOnWhileTheDiskIsSlow(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		open := make(chan struct{})
		close(open)
		fs := &gateFS{FS: journal.OS, gate: open}
		s, err := New(openEngine(t, engine.Options{JournalFS: fs}), o)
		if err != nil {
			t.Fatal(err)
		}
		s.slowDisk = -1 // every commit counts as slow
		addr := start(t, s)
		writer, reader := dial(t, addr), dial(t, addr)
		writer.do("SET", "quiet", "7")
		shut := make(chan struct{})
		fs.mu.Lock()
		fs.gate = shut
		fs.mu.Unlock()
		writer.send(append(encode("INCR", "busy"), encode("GET", "quiet")...))
		for range 100 {
			if v := reader.do("GET", "quiet"); v.text != "7" {
				t.Errorf("GET quiet answers %s", v)
			}
		}
		writer.send(encode("INCR", "busy"))
		reader.do("PING")
		fs.mu.Lock()
		fs.gate = open
		fs.mu.Unlock()
		close(shut)
		for _, want := range []string{"1", `"7"`, "2"} {
			if v := writer.read(); v.String() != want {
				t.Errorf("got %s, want %s", v, want)
			}
		}
	})
}

// A client that has sent everything may close its side and still gets its answers.
func TestHalfClose(t *testing.T) {
	transports(t, "", func(t *testing.T, o Options) {
		p := dial(t, start(t, newServer(t, o)))
		p.send([]byte("INCR a\r\nKEYS *\r\nINCR a\r\nINC"))
		p.nc.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(p.r); string(got) != ":1\r\n*1\r\n$1\r\na\r\n:2\r\n" {
			t.Errorf("answered %q, %v", got, err)
		}
	})
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is needed; on Debian: apt-get install redis-tools", name)
	}
	return path
}

// redis-cli and redis-benchmark, as people run them.
func TestRedisTools(t *testing.T) {
	cli, bench := program(t, "redis-cli"), program(t, "redis-benchmark")
	transports(t, "", func(t *testing.T, o Options) {
		_, port, _ := net.SplitHostPort(start(t, newServer(t, o)))
		tool := func(path string, stdin string, args ...string) string {
			cmd := exec.Command(path, append([]string{"-p", port}, args...)...)
			cmd.Stdin = strings.NewReader(stdin)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s %q: %v\n%s", path, args, err, out)
			}
			return string(out)
		}
		for _, c := range []struct{ in, want string }{
			{"INCR page", "1"}, {"HINCRBY post:1 like 2", "2"}, {"HGETALL post:1", "like\n2"}, {"GET none", ""}, {"SET page x", "ERR value is not an integer or out of range\n"}, {"SCAN 0", "0\npage\npost:1"},
		} {
			if got := strings.TrimSuffix(tool(cli, "", splitCommand(c.in)...), "\n"); got != c.want {
				t.Errorf("redis-cli %s prints %q, want %q", c.in, got, c.want)
			}
		}
		if got := tool(cli, "", "-3", "HGETALL", "post:1"); got != "like 2\n" {
			t.Errorf("redis-cli -3 HGETALL prints %q", got)
		}
		var pipe strings.Builder
		for range 1000 {
			pipe.Write(encode("INCR", "piped"))
		}
		if got := tool(cli, pipe.String(), "--pipe"); !strings.Contains(got, "errors: 0, replies: 1000") {
			t.Errorf("redis-cli --pipe prints %q", got)
		}
		for _, mode := range []string{"--bigkeys", "--scan"} {
			if got := tool(cli, "", mode); strings.Contains(got, "ERR") {
				t.Errorf("redis-cli %s prints %q", mode, got)
			}
		}
		for _, args := range [][]string{
			{"-t", "ping,incr,get"}, {"SET", "key:__rand_int__", "5"}, {"MSET", "a", "1", "b", "2"}, {"HSET", "h:__rand_int__", "f", "5"}, {"HINCRBY", "h:__rand_int__", "f", "5"}, {"MGET", "a", "b"}, {"TALLY.MADD", "COUNTS", "1", "h:__rand_int__", "f", "5"},
		} {
			out := tool(bench, "", append([]string{"-q", "-n", "2000", "-r", "1000", "-P", "4"}, args...)...)
			if strings.Contains(out, "rror") || !strings.Contains(out, "requests per second") {
				t.Errorf("redis-benchmark %q prints %s", args, out)
			}
		}
	})
}
