package resp

import (
	"strings"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// scanCommands are about all objects.
var scanCommands = []command{
	{name: "scan", arity: -2, flags: read | noMulti, group: "generic", since: "2.8.0", slowFrom: always,
		syntax:  "cursor [MATCH pattern] [COUNT count] [TYPE string | hash]",
		summary: "Lists objects some at a time, by namespace and id.", run: scan},
	{name: "keys", arity: 2, flags: read | noMulti, group: "generic", since: "1.0.0", syntax: "pattern", slowFrom: always,
		summary: "Lists all keys that match; refused when the answer outgrows the output limit.", run: keys},
	{name: "dbsize", arity: 1, flags: read | fast | noMulti, group: "server", since: "1.0.0",
		summary: "Counts the objects.", run: dbSize},
	{name: "flushall", arity: -1, flags: write | everyKey, group: "server", since: "1.0.0", syntax: "[ASYNC | SYNC]", slowFrom: always,
		summary: "Deletes every object of every namespace; schemas stay.", hot: flushHot, tx: flush},
	{name: "flushdb", arity: -1, flags: write | everyKey, group: "server", since: "1.0.0", syntax: "[ASYNC | SYNC]", slowFrom: always,
		summary: "The same as FLUSHALL: there is one database.", hot: flushHot, tx: flush},
}

// scanCountMax bounds the objects that one SCAN visits.
const scanCountMax = 1 << 16

// scanOptions are what SCAN and HSCAN take.
type scanOptions struct {
	pattern  string // "": everything
	count    int
	typeName string
	noValues bool
}

func (o *scanOptions) match(s string) bool { return o.pattern == "" || glob(o.pattern, s) }

// parseScan reads the options behind a cursor.
func parseScan(args [][]byte, hash bool) (o scanOptions, err error) {
	o.count = 10
	for i := 0; i < len(args); i++ {
		more := i+1 < len(args)
		switch {
		case is(args[i], "COUNT") && more:
			i++
			n, err := integer(args[i])
			if err != nil {
				return o, err
			}
			if n < 1 {
				return o, errSyntax
			}
			o.count = int(min(n, scanCountMax))
		case is(args[i], "MATCH") && more:
			i++
			if o.pattern = string(args[i]); o.pattern == "*" {
				o.pattern = ""
			}
		case is(args[i], "TYPE") && more && !hash:
			i++
			o.typeName = strings.ToLower(string(args[i]))
		case is(args[i], "NOVALUES") && hash:
			o.noValues = true
		default:
			return o, errSyntax
		}
	}
	return o, nil
}

func cursorOf(b []byte) (uint64, error) {
	id := counter.ParseID(view(b)) // a number in its one decimal form
	n, ok := id.Int()
	if !ok {
		return 0, replyError("ERR invalid cursor")
	}
	return n, nil
}

// place is where a scan goes on.
type place struct {
	namespace string
	id        counter.ID
}

func scan(c *conn, args [][]byte) error {
	cursor, err := cursorOf(args[1])
	if err != nil {
		return err
	}
	opts, err := parseScan(args[2:], false)
	if err != nil {
		return err
	}
	from := place{}
	if cursor != 0 {
		var ok bool
		if from, ok = c.server.cursors.get(cursor); !ok {
			return errorf("ERR cursor %d is not known (any more); start again with SCAN 0", cursor)
		}
	}
	page := writer{resp3: c.w.resp3}
	n := 0
	next, more, err := c.scanFrom(from, opts.count, literalPrefix(opts.pattern), func(key []byte, values []counter.Value) bool {
		if opts.match(view(key)) && (opts.typeName == "" || opts.typeName == typeName(values)) {
			page.bulk(key)
			n++
		}
		return true
	})
	if err != nil {
		return err
	}
	c.w.array(2)
	var digits [20]byte
	if more {
		c.w.bulk(counter.IntID(c.server.cursors.put(next)).Append(digits[:0]))
	} else {
		c.w.bulkString("0")
	}
	c.w.array(n)
	c.w.b = append(c.w.b, page.b...)
	return nil
}

// scanFrom visits up to limit objects whose written key may begin with prefix,
// by namespace and id, until visit returns false.
func (c *conn) scanFrom(at place, limit int, prefix string, visit func(key []byte, values []counter.Value) bool) (next place, more bool, err error) {
	var key []byte
	for _, ns := range c.engine.Namespaces() {
		if ns.Name < at.namespace || !mayBegin(ns.Name, prefix) {
			continue
		}
		from := counter.IntID(0)
		if ns.Name == at.namespace {
			from = at.id
		}
		if limit <= 0 {
			return place{ns.Name, from}, true, nil
		}
		stopped := false
		id, more, pos, err := c.engine.Scan(ns.Name, from, limit, func(id counter.ID, values []counter.Value) bool {
			limit--
			key = counter.Key{Namespace: ns.Name, ID: id}.Append(key[:0])
			stopped = !visit(key, values)
			return !stopped
		})
		if err != nil {
			return place{}, false, err
		}
		c.after(pos)
		if more || stopped {
			return place{ns.Name, id.Clone()}, more, nil
		}
	}
	return place{}, false, nil
}

// mayBegin tells whether some key of a namespace can begin with prefix.
func mayBegin(namespace, prefix string) bool {
	if namespace == counter.DefaultNamespace {
		return !strings.Contains(prefix, ":") || strings.HasPrefix(prefix, "{")
	}
	n := min(len(namespace), len(prefix))
	return namespace[:n] == prefix[:n] && (len(prefix) <= n || prefix[n] == ':')
}

func keys(c *conn, args [][]byte) error {
	pattern := string(args[1])
	page := writer{resp3: c.w.resp3}
	n, full := 0, false
	visit := func(key []byte, _ []counter.Value) bool {
		if glob(pattern, view(key)) {
			page.bulk(key)
			n++
		}
		full = len(page.b) > c.server.opts.OutputBytesMax/2
		return !full
	}
	for at, more := (place{}), true; more; {
		var err error
		if at, more, err = c.scanFrom(at, scanCountMax, literalPrefix(pattern), visit); err != nil {
			return err
		}
		if full {
			return errorf("ERR the answer has more than %d bytes; use SCAN", c.server.opts.OutputBytesMax/2)
		}
	}
	c.w.array(n)
	c.w.b = append(c.w.b, page.b...)
	return nil
}

func dbSize(c *conn, _ [][]byte) error {
	c.w.int(c.engine.Objects())
	return nil
}

func flushOptions(args [][]byte) error {
	if len(args) > 2 || (len(args) == 2 && !is(args[1], "ASYNC") && !is(args[1], "SYNC")) {
		return errSyntax
	}
	return nil
}

func flushHot(c *conn, args [][]byte) error {
	if err := flushOptions(args); err != nil {
		return err
	}
	pos, err := c.engine.Clear()
	if err != nil {
		return err
	}
	c.after(pos)
	c.w.ok()
	return nil
}

func flush(c *conn, tx *engine.Tx, args [][]byte) error {
	if err := flushOptions(args); err != nil {
		return err
	}
	tx.DeleteAll()
	c.w.ok()
	return nil
}
