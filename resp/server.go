package resp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// Options of a server. Zero values mean the defaults.
type Options struct {
	Password string          // clients must give it, with AUTH or HELLO; "": none
	Sync     engine.SyncMode // of the engine, for what CONFIG GET and WAITAOF answer
	Version  string          // of the program; default: what it was built as
	Shutdown func()          // what SHUTDOWN calls, in the goroutine of a connection: it must not wait for the server

	ConnectionsMax   int           // default 10,000
	RequestBytesMax  int           // of one request; default 64 MiB
	ArgsMax          int           // arguments of one request; default 1 Mi
	BulkBytesMax     int           // of one argument; default 512 KiB
	InlineBytesMax   int           // of a request typed as a line; default 64 KiB
	OutputBytesMax   int           // replies a client has not read before its requests wait; default 64 MiB
	BufferedBytesMax int64         // requests and replies of all connections, beyond 64 KiB each; default 1 GiB
	IdleTimeout      time.Duration // a connection that sends nothing ends; default 0: never
	SlowTimeout      time.Duration // one that does not read its replies ends; default 60 s

	// Loops is the number of event loops; default half of the processors, at
	// least 1. Only where there are event loops: on Linux.
	Loops int
	// Goroutines serves each connection by a goroutine instead, as on systems
	// without event loops.
	Goroutines bool

	Logger *slog.Logger // default: discards
}

func (o *Options) fill() error {
	o.ConnectionsMax = cmp.Or(o.ConnectionsMax, 10_000)
	o.RequestBytesMax = cmp.Or(o.RequestBytesMax, 64<<20)
	o.ArgsMax = cmp.Or(o.ArgsMax, 1<<20)
	o.BulkBytesMax = cmp.Or(o.BulkBytesMax, 512<<10)
	o.InlineBytesMax = cmp.Or(o.InlineBytesMax, 64<<10)
	o.OutputBytesMax = cmp.Or(o.OutputBytesMax, 64<<20)
	o.BufferedBytesMax = cmp.Or(o.BufferedBytesMax, 1<<30)
	o.SlowTimeout = cmp.Or(o.SlowTimeout, time.Minute)
	o.Loops = cmp.Or(o.Loops, max(1, runtime.NumCPU()/2))
	o.Version = cmp.Or(o.Version, buildVersion())
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var problems []error
	for _, n := range []struct {
		name              string
		value, least, top int64
	}{
		{"ConnectionsMax", int64(o.ConnectionsMax), 1, 1 << 20},
		{"RequestBytesMax", int64(o.RequestBytesMax), 1 << 10, 1 << 30},
		{"ArgsMax", int64(o.ArgsMax), 16, 16 << 20},
		{"BulkBytesMax", int64(o.BulkBytesMax), 1 << 10, 1 << 30},
		{"InlineBytesMax", int64(o.InlineBytesMax), 1 << 10, 1 << 20},
		{"OutputBytesMax", int64(o.OutputBytesMax), 64 << 10, 1 << 30},
		{"BufferedBytesMax", o.BufferedBytesMax, 1 << 20, 1 << 50},
		{"IdleTimeout in seconds", int64(o.IdleTimeout / time.Second), 0, 1 << 30},
		{"SlowTimeout in milliseconds", o.SlowTimeout.Milliseconds(), 1, 1 << 40},
		{"Loops", int64(o.Loops), 1, 1024},
	} {
		if n.value < n.least || n.value > n.top {
			problems = append(problems, fmt.Errorf("%s is %d, it may be %d to %d: %w", n.name, n.value, n.least, n.top, counter.ErrInvalid))
		}
	}
	return errors.Join(problems...)
}

// Server speaks the Redis protocol for an engine.
type Server struct {
	engine  *engine.Engine
	opts    Options
	limits  limits
	log     *slog.Logger
	started time.Time
	runID   string
	cursors *cursors
	stats   stats

	lastSave atomic.Int64 // unix seconds
	saving   atomic.Bool
	buffered atomic.Int64   // bytes in large buffers
	slots    chan struct{}  // limits the slow commands that run at once
	slowDisk time.Duration  // time of a commit from which an event loop does not wait itself
	tasks    sync.WaitGroup // slow commands, checkpoints

	mu       sync.Mutex
	nextID   uint64
	conns    map[uint64]*conn
	addr     net.Addr
	closed   bool
	stops    []func(context.Context) // of the transports
	serving  sync.WaitGroup
	stopOnce sync.Once
}

// New returns a server for e. It owns neither e nor a goroutine until Serve.
// ErrInvalid names every option that is out of range.
func New(e *engine.Engine, o Options) (*Server, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	s := &Server{
		engine:  e,
		opts:    o,
		log:     o.Logger,
		limits:  limits{request: o.RequestBytesMax, args: o.ArgsMax, bulk: o.BulkBytesMax, inline: o.InlineBytesMax},
		started: time.Now(),
		runID:   fmt.Sprintf("%016x%016x%08x", rand.Uint64(), rand.Uint64(), rand.Uint32()),
		cursors: newCursors(),
		slots:   make(chan struct{}, 4*runtime.NumCPU()),
		conns:   map[uint64]*conn{},

		slowDisk: time.Millisecond,
	}
	s.lastSave.Store(s.started.Unix())
	s.stats.rateAt = s.started
	return s, nil
}

// Serve takes connections from ln, which it closes in the end, until Close. It
// may be called for several listeners. nil after Close, an error of ln otherwise.
func (s *Server) Serve(ln net.Listener) error {
	t, err := s.transport(ln)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		t.abandon()
		return nil
	}
	if s.addr == nil {
		s.addr = ln.Addr()
	}
	s.stops = append(s.stops, t.stop)
	s.serving.Add(1)
	s.mu.Unlock()
	defer s.serving.Done()
	return t.serve()
}

// transport moves bytes between sockets and conns.
type transport interface {
	serve() error             // until stop
	stop(ctx context.Context) // ends serve: what was answered is sent, until ctx ends
	abandon()                 // gives up what was taken, when serve is not called
}

// Close stops taking connections and requests, sends the answers to those that
// were taken, and ends every connection: at the latest when ctx ends, whose
// error it then returns. It returns when nothing of the server runs any more.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	stops := s.stops
	s.mu.Unlock()
	s.stopOnce.Do(func() {
		for _, stop := range stops {
			stop(ctx)
		}
	})
	s.serving.Wait()
	s.tasks.Wait()
	return ctx.Err()
}

// Addr is the address of the first listener served, nil before.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

func (s *Server) port() int {
	if tcp, ok := s.Addr().(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}

const tooManyConnections = "-ERR max number of clients reached\r\n"

// register takes c up unless there are too many.
func (s *Server) register(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) >= s.opts.ConnectionsMax {
		s.stats.rejected.Add(1)
		return false
	}
	s.nextID++
	c.id = s.nextID
	s.conns[c.id] = c
	s.stats.accepted.Add(1)
	return true
}

func (s *Server) forget(c *conn) {
	s.buffered.Add(-c.counted)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c.id)
}

func (s *Server) connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// connections lists them by age.
func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*conn, 0, len(s.conns))
	for _, c := range s.conns {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	return all
}

// smallBuffer is what a connection may hold without being counted.
const smallBuffer = 64 << 10

// buffer counts the n bytes that c holds and reports whether all connections
// together hold too many, so that this one has to end.
func (s *Server) buffer(c *conn, n int) (over bool) {
	if n <= smallBuffer {
		n = 0
	}
	if d := int64(n) - c.counted; d != 0 {
		c.counted = int64(n)
		over = s.buffered.Add(d) > s.opts.BufferedBytesMax && d > 0
	}
	return over
}

func (s *Server) logClose(c *conn, why string) {
	s.log.Warn("connection closed", "client", c.info.remote, "id", c.id, "reason", why)
}
