package resp

import (
	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// multiCommands run several commands as one transaction of the engine: its keys
// held together, its effects one journal record.
var multiCommands = []command{
	{name: "multi", arity: 1, flags: fast | immediate | stateful, group: "transactions", since: "1.2.0",
		summary: "Begins a transaction: commands are queued until EXEC.", run: beginMulti},
	{name: "exec", arity: 1, flags: immediate | stateful, group: "transactions", since: "1.2.0",
		summary: "Runs the queued commands as one; nil when a watched object has changed.", run: execMulti},
	{name: "discard", arity: 1, flags: fast | immediate | stateful, group: "transactions", since: "2.0.0",
		summary: "Drops the queued commands.", run: discard},
	{name: "watch", arity: -2, flags: read | fast | immediate | stateful, keys: allKeys, group: "transactions", since: "2.2.0",
		syntax: "key [key ...]", summary: "Remembers objects; EXEC runs only if their counters and expiry are then the same.", run: watch},
	{name: "unwatch", arity: 1, flags: fast | stateful, group: "transactions", since: "2.2.0",
		summary: "Forgets the watched objects.", run: unwatch},
}

// Limits of one transaction.
const (
	queuedMax      = 64 << 10
	queuedBytesMax = 64 << 20
	watchedMax     = 1024
	slowQueue      = 1024 // commands from which EXEC is run beside the event loop
)

// multi is a connection's transaction.
type multi struct {
	open    bool
	spoiled bool // a command was refused: EXEC will be
	slow    bool
	all     bool // a queued command touches every object
	queue   []queued
	bytes   int
	watched []watched
}

type queued struct {
	cmd  *command
	args [][]byte
}

// watched is an object as WATCH saw it.
type watched struct {
	key counter.Key
	was snapshot
}

func (m *multi) spoil() { m.spoiled = m.open }

func (m *multi) discard(c *conn) {
	*m = multi{}
	c.info.queued.Store(-1)
}

func beginMulti(c *conn, _ [][]byte) error {
	if c.multi.open {
		return errNestedMulti
	}
	c.multi.open = true
	c.info.queued.Store(0)
	c.w.ok()
	return nil
}

// queue keeps a command for EXEC.
func (c *conn) queue(args [][]byte) error {
	m := &c.multi
	for _, a := range args {
		m.bytes += len(a) + 32
	}
	if len(m.queue) == queuedMax || m.bytes > queuedBytesMax {
		m.spoil()
		return errorf("ERR the transaction has more than %d commands or %d bytes; split it", queuedMax, queuedBytesMax)
	}
	m.queue = append(m.queue, queued{c.cmd, clone(args)})
	m.all = m.all || c.cmd.has(everyKey)
	m.slow = m.all || len(m.queue) > slowQueue || m.bytes > 1<<20
	c.info.queued.Store(int32(len(m.queue)))
	c.w.simple("QUEUED")
	return nil
}

func discard(c *conn, _ [][]byte) error {
	if !c.multi.open {
		return replyError("ERR DISCARD without MULTI")
	}
	c.multi.discard(c)
	c.w.ok()
	return nil
}

func execMulti(c *conn, _ [][]byte) error {
	if !c.multi.open {
		return replyError("ERR EXEC without MULTI")
	}
	m := c.multi
	c.multi.discard(c)
	if m.spoiled {
		return errExecAbort
	}
	keys, writes := m.keys()
	run := func(tx *engine.Tx) error { return c.runQueue(tx, &m) }
	var pos engine.Pos
	var err error
	switch {
	case m.all:
		pos, err = c.engine.UpdateAll(run)
	case writes:
		pos, err = c.engine.Update(keys, run)
	default:
		pos, err = c.engine.View(keys, run)
	}
	c.after(pos)
	return err
}

// keys lists the objects that the transaction touches. A key that is not valid
// is left out: its command will be refused.
func (m *multi) keys() (keys []counter.Key, writes bool) {
	for _, w := range m.watched {
		keys = append(keys, w.key)
	}
	for _, q := range m.queue {
		if q.cmd.tx == nil {
			continue
		}
		writes = writes || q.cmd.has(write)
		q.cmd.keys.each(q.args, func(b []byte) {
			if k, err := parseKey(b); err == nil {
				keys = append(keys, k)
			}
		})
	}
	return keys, writes
}

func (c *conn) runQueue(tx *engine.Tx, m *multi) error {
	for _, w := range m.watched {
		now, err := takeSnapshot(tx, w.key)
		if err != nil {
			return err
		}
		if !now.equal(w.was) {
			c.w.nullArray()
			return nil
		}
	}
	first := len(c.w.b)
	c.w.array(len(m.queue))
	for _, q := range m.queue {
		start := len(c.w.b)
		err := error(nil)
		if start-first > c.server.opts.OutputBytesMax {
			err = errorf("ERR the transaction's answer has more than %d bytes; this command was not run", c.server.opts.OutputBytesMax)
		} else {
			err = c.runQueued(tx, q)
		}
		if err != nil {
			c.w.b = c.w.b[:start]
			c.w.error(err)
		}
	}
	return nil
}

func (c *conn) runQueued(tx *engine.Tx, q queued) error {
	c.cmd, c.args = q.cmd, q.args
	if q.cmd.tx == nil {
		return q.cmd.run(c, q.args)
	}
	c.keys = c.keys[:0]
	var bad error
	q.cmd.keys.each(q.args, func(b []byte) {
		k, err := parseKey(b)
		if err != nil {
			bad = err
		}
		c.keys = append(c.keys, k)
	})
	if bad != nil {
		return bad
	}
	return q.cmd.tx(c, tx, q.args)
}

func watch(c *conn, args [][]byte) error {
	if c.multi.open {
		return replyError("ERR WATCH inside MULTI is not allowed")
	}
	if len(c.multi.watched)+len(args)-1 > watchedMax {
		return errorf("ERR a connection may watch %d objects at most", watchedMax)
	}
	args = clone(args)
	keys := make([]counter.Key, 0, len(args)-1)
	for _, b := range args[1:] {
		k, err := parseKey(b)
		if err != nil {
			return err
		}
		keys = append(keys, k)
	}
	var fresh []watched
	pos, err := c.engine.View(keys, func(tx *engine.Tx) error {
		for _, k := range keys {
			was, err := takeSnapshot(tx, k)
			if err != nil {
				return err
			}
			fresh = append(fresh, watched{k, was})
		}
		return nil
	})
	c.after(pos)
	if err != nil {
		return err
	}
	c.multi.watched = append(c.multi.watched, fresh...)
	c.w.ok()
	return nil
}

func unwatch(c *conn, _ [][]byte) error {
	if !c.multi.open {
		c.multi.watched = nil
	}
	c.w.ok()
	return nil
}
