package resp

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// conn is one client: what it sent, what it is owed, and its state. It knows
// nothing of sockets, so tests and fuzzers drive it with bytes.
type conn struct {
	server *Server
	engine *engine.Engine
	id     uint64
	info   info

	in  reader
	w   writer
	pos engine.Pos // the replies written since take() depend on the journal up to here
	due int        // replies written since take()
	tie bool       // one of them belongs to a change of the connection's state

	admitted bool // the engine has room for what this call of process adds

	gather   *gather // of the event loop; nil: increments run one by one
	gathered int     // increments of this connection in it

	authenticated bool
	silent        replyMode
	last          *command
	ran, errors   int64 // since settle
	counted       int64 // bytes of Server.buffered
	closing       bool  // no further request is read; the connection ends once its output is written
	multi         multi

	// A slow command stops process; the transport has runSlow called where it is
	// in nobody's way.
	slow     *command
	slowArgs [][]byte

	// The request that runs, for the transaction that runs it.
	cmd   *command
	args  [][]byte
	runTx func(*engine.Tx) error

	*scratch
}

// scratch is memory that commands reuse. It belongs to the goroutine that runs
// the connection, not to the connection, so idle ones hold none.
type scratch struct {
	words   words
	keys    []counter.Key
	names   []string
	ints    []int64
	present []bool
	values  []counter.Value
	batch   addScratch
}

// trim drops what an unusually large request has left.
func (s *scratch) trim() {
	if cap(s.keys) > keptMax {
		s.keys = nil
	}
	if cap(s.names) > keptMax {
		s.names = nil
	}
	if cap(s.ints) > keptMax || cap(s.present) > keptMax {
		s.ints, s.present = nil, nil
	}
	if cap(s.values) > keptMax {
		s.values = nil
	}
	s.batch.trim()
}

// scratches are for slow commands, which run outside the goroutine of their connection.
var scratches = sync.Pool{New: func() any { return new(scratch) }}

// info is what other connections may ask about this one.
type info struct {
	remote, local string
	created       time.Time
	lastActive    atomic.Int64 // unix nanoseconds
	lastCommand   atomic.Pointer[command]
	queued        atomic.Int32 // commands in MULTI, -1 outside
	resp3         atomic.Bool
	close         func() // asks the transport to end the connection; any goroutine

	mu                        sync.Mutex // guards the names
	name, libName, libVersion string
}

// replyMode is what CLIENT REPLY set.
type replyMode uint8

const (
	replyOn       replyMode = iota
	replyOff                // nothing is answered
	replySkipNext           // this command is not answered, nor is the next
	replySkip               // this command is not answered
)

func (s *Server) newConn(scratch *scratch, remote, local string) *conn {
	c := &conn{server: s, engine: s.engine, scratch: scratch}
	c.in.words = &scratch.words
	c.setAuthenticated(s.opts.Password == "")
	c.info.remote, c.info.local, c.info.created = remote, local, time.Now()
	c.info.lastActive.Store(c.info.created.UnixNano())
	c.info.queued.Store(-1)
	c.runTx = func(tx *engine.Tx) error { return c.cmd.tx(c, tx, c.args) }
	return c
}

// process runs the complete requests at the start of in, appends their replies
// to c.w, and returns how many bytes it is done with. It stops early when a slow
// command is next (c.slow), when the connection is to end (c.closing), or when
// the output has reached outputMax bytes; call it again then, with the rest.
func (c *conn) process(in []byte, outputMax int) (consumed int) {
	c.admitted = false
	for consumed < len(in) && !c.closing && c.slow == nil && len(c.w.b) < outputMax {
		args, n, err := c.in.next(in[consumed:])
		if err != nil {
			c.server.logClose(c, err.Error())
			c.finish()
			c.w.error(err)
			c.due++
			c.closing = true
			consumed = len(in)
			break
		}
		if n == 0 {
			break
		}
		consumed += n
		if len(args) > 0 {
			c.dispatch(args)
		}
	}
	c.settle()
	return consumed
}

// finish runs what is gathered of this connection, before anything else of it.
func (c *conn) finish() {
	if c.gathered > 0 {
		c.gather.run()
	}
}

// settle publishes what process counted.
func (c *conn) settle() {
	c.scratch.trim()
	if c.ran == 0 {
		return
	}
	c.info.lastCommand.Store(c.last)
	c.server.stats.commands.Add(c.ran)
	if c.errors > 0 {
		c.server.stats.errors.Add(c.errors)
	}
	c.ran, c.errors = 0, 0
}

// dispatch runs, queues or puts off one request.
func (c *conn) dispatch(args [][]byte) {
	cmd := find(args[0])
	refused := c.refuse(cmd, args)
	if c.gather != nil && refused == nil && c.gather.takes(c, cmd, args) {
		c.last = cmd
		return
	}
	c.finish()
	if refused != nil {
		c.multi.spoil()
		c.reply(nil, args, func(*conn, [][]byte) error { return refused })
		return
	}
	c.last = cmd
	switch {
	case c.multi.open && !cmd.has(immediate):
		c.reply(cmd, args, (*conn).queue)
	case cmd.slow(len(args)) || (c.multi.slow && cmd.name == "exec"):
		c.slow, c.slowArgs = cmd, clone(args)
	default:
		c.reply(cmd, args, nil)
	}
}

// refuse says why a request cannot run, if so.
func (c *conn) refuse(cmd *command, args [][]byte) error {
	switch {
	case cmd == nil:
		if !c.authenticated {
			return errNoAuth
		}
		if webRequest(args[0]) {
			c.server.logClose(c, "a web browser's request; this port speaks the Redis protocol")
			c.closing = true
		}
		return unserved(args)
	case !cmd.arityOK(len(args)):
		return errorf("ERR wrong number of arguments for '%s' command", cmd.name)
	case !c.authenticated && !cmd.has(noAuth):
		return errNoAuth
	case c.multi.open && cmd.has(noMulti):
		return errOutOfMulti
	}
	return nil
}

// webRequest tells whether a request's first word is one that a browser sends
// when a web page makes it talk to this port.
func webRequest(name []byte) bool { return is(name, "POST") || is(name, "HOST:") }

// runSlow runs the command that process stopped at.
func (c *conn) runSlow() {
	mine := c.scratch
	c.scratch = scratches.Get().(*scratch)
	cmd, args := c.slow, c.slowArgs
	c.slow, c.slowArgs, c.admitted = nil, nil, false
	c.reply(cmd, args, nil)
	c.settle()
	scratches.Put(c.scratch)
	c.scratch = mine
}

// reply runs a request and sees that it is answered exactly once. do replaces
// what the command does by itself.
func (c *conn) reply(cmd *command, args [][]byte, do func(*conn, [][]byte) error) {
	c.cmd, c.args = cmd, args
	start := len(c.w.b)
	var err error
	switch {
	case do != nil:
		err = do(c, args)
	case cmd.hot != nil:
		err = cmd.hot(c, args)
	case cmd.tx != nil:
		err = c.transact(cmd, args)
	default:
		err = cmd.run(c, args)
	}
	if err != nil {
		c.w.b = c.w.b[:start]
		c.w.error(err)
		c.errors++
	}
	c.ran++
	switch c.silent {
	case replyOn:
		c.due++
	case replyOff:
		c.w.b = c.w.b[:start]
	case replySkipNext:
		c.w.b, c.silent = c.w.b[:start], replySkip
	case replySkip:
		c.w.b, c.silent = c.w.b[:start], replyOn
	}
	c.tie = c.tie || (cmd != nil && cmd.has(stateful))
}

// transact runs a command about counters as a transaction of its own.
func (c *conn) transact(cmd *command, args [][]byte) (err error) {
	c.keys = c.keys[:0]
	cmd.keys.each(args, func(b []byte) {
		k, bad := parseKey(b)
		if bad != nil && err == nil {
			err = bad
		}
		c.keys = append(c.keys, k)
	})
	if err != nil {
		return err
	}
	var pos engine.Pos
	if cmd.has(write) {
		pos, err = c.engine.Update(c.keys, c.runTx)
	} else {
		pos, err = c.engine.View(c.keys, c.runTx)
	}
	c.after(pos)
	return err
}

// after notes that the reply being written shows the journal up to pos.
func (c *conn) after(pos engine.Pos) { c.pos = max(c.pos, pos) }

// admit waits, once in a call of process, while the journal has too much to write.
func (c *conn) admit() error {
	if c.admitted {
		return nil
	}
	err := c.engine.Admit()
	c.admitted = err == nil
	return err
}

// take returns what the replies written since the last take depend on, and how
// many there are.
func (c *conn) take() (pos engine.Pos, replies int, tied bool) {
	pos, replies, tied = c.pos, c.due, c.tie
	c.pos, c.due, c.tie = 0, 0, false
	return pos, replies, tied
}

func (c *conn) setResp3(on bool) {
	c.w.resp3 = on
	c.info.resp3.Store(on)
}

// view is b as a string that shares its memory. The engine reads strings only
// during a call, while the buffer they stand in is left alone.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// clone copies a request out of the buffer it was read from.
func clone(args [][]byte) [][]byte {
	size := 0
	for _, a := range args {
		size += len(a)
	}
	all := make([]byte, 0, size)
	out := make([][]byte, len(args))
	for i, a := range args {
		from := len(all)
		all = append(all, a...)
		out[i] = all[from:len(all):len(all)]
	}
	return out
}

// upper is an argument in upper case, for a switch over keywords.
func upper(b []byte) string { return string(bytes.ToUpper(b)) }
