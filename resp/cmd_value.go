package resp

import (
	"math"
	"strconv"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// valueCommands mean counter "value" of an object: Redis' strings.
var valueCommands = []command{
	{name: "get", arity: 2, flags: read | fast, keys: oneKey, group: "string", since: "1.0.0", syntax: "key",
		summary: "Reads counter value of an object.", hot: getHot, tx: get},
	{name: "set", arity: -3, flags: write, keys: oneKey, group: "string", since: "1.0.0",
		syntax:  "key integer [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-seconds | PXAT unix-milliseconds | KEEPTTL]",
		summary: "Sets counter value of an object; other counters of it stay.", tx: set},
	{name: "setex", arity: 4, flags: write, keys: oneKey, group: "string", since: "2.0.0", syntax: "key seconds integer",
		summary: "Sets counter value and the expiry of an object.", tx: setWith("EX", "setex")},
	{name: "psetex", arity: 4, flags: write, keys: oneKey, group: "string", since: "2.6.0", syntax: "key milliseconds integer",
		summary: "Sets counter value and the expiry of an object.", tx: setWith("PX", "psetex")},
	{name: "setnx", arity: 3, flags: write | fast, keys: oneKey, group: "string", since: "1.0.0", syntax: "key integer",
		summary: "Sets counter value unless the object exists.", tx: setNX},
	{name: "getset", arity: 3, flags: write | fast, keys: oneKey, group: "string", since: "1.0.0", syntax: "key integer",
		summary: "Sets counter value and answers the one before.", tx: getSet},
	{name: "getdel", arity: 2, flags: write | fast, keys: oneKey, group: "string", since: "6.2.0", syntax: "key",
		summary: "Reads counter value and removes it; other counters of the object stay.", tx: getDel},
	{name: "getex", arity: -2, flags: write | fast, keys: oneKey, group: "string", since: "6.2.0",
		syntax:  "key [EX seconds | PX milliseconds | EXAT unix-seconds | PXAT unix-milliseconds | PERSIST]",
		summary: "Reads counter value and sets or removes the object's expiry.", tx: getEx},
	{name: "mget", arity: -2, flags: read | fast, keys: allKeys, group: "string", since: "1.0.0", syntax: "key [key ...]",
		summary: "Reads counter value of many objects.", hot: mgetHot, tx: mget, slowFrom: slowKeys},
	{name: "mset", arity: -3, flags: write, keys: evenKeys, group: "string", since: "1.0.1", syntax: "key integer [key integer ...]",
		summary: "Sets counter value of many objects, all or none.", tx: mset, slowFrom: slowKeys},
	{name: "msetnx", arity: -3, flags: write, keys: evenKeys, group: "string", since: "1.0.1", syntax: "key integer [key integer ...]",
		summary: "Sets counter value of many objects unless one of them exists.", tx: msetNX, slowFrom: slowKeys},
	{name: "incr", arity: 2, flags: write | fast, keys: oneKey, group: "string", since: "1.0.0", syntax: "key",
		summary: "Adds 1 to counter value.", hot: incrementHot, tx: incrementTx, increment: incrOf},
	{name: "decr", arity: 2, flags: write | fast, keys: oneKey, group: "string", since: "1.0.0", syntax: "key",
		summary: "Subtracts 1 from counter value.", hot: incrementHot, tx: incrementTx, increment: decrOf},
	{name: "incrby", arity: 3, flags: write | fast, keys: oneKey, group: "string", since: "1.0.0", syntax: "key delta",
		summary: "Adds to counter value.", hot: incrementHot, tx: incrementTx, increment: incrByOf},
	{name: "decrby", arity: 3, flags: write | fast, keys: oneKey, group: "string", since: "1.0.0", syntax: "key delta",
		summary: "Subtracts from counter value.", hot: incrementHot, tx: incrementTx, increment: decrByOf},
	{name: "incrbyfloat", arity: 3, flags: write | fast, keys: oneKey, group: "string", since: "2.6.0", syntax: "key delta",
		summary: "Refused: Tally counts whole numbers.", tx: refuseFloat},
	{name: "increx", arity: -2, flags: write | fast, keys: oneKey, group: "string", since: "8.8.0",
		syntax: "key [BYINT delta] [LBOUND least] [UBOUND most] [SATURATE]" +
			" [EX seconds | PX milliseconds | EXAT unix-seconds | PXAT unix-milliseconds | PERSIST] [ENX]",
		summary: "Adds to counter value within bounds and sets the object's expiry; answers the value and what was added.", tx: incrEx},
	{name: "strlen", arity: 2, flags: read | fast, keys: oneKey, group: "string", since: "2.2.0", syntax: "key",
		summary: "Counts the characters of counter value as written; 0 when it is absent.", tx: strLen},
}

// slowKeys is the number of arguments from which a command over many keys is
// run beside the event loop.
const slowKeys = 4096

func (w *writer) value(v int64, present bool) {
	if present {
		w.bulkInt(v)
	} else {
		w.null()
	}
}

func getHot(c *conn, args [][]byte) error {
	k, err := parseKey(args[1])
	if err != nil {
		return err
	}
	v, present, pos, err := c.engine.Get(k, counter.ValueCounter)
	if err != nil {
		return err
	}
	c.after(pos)
	c.w.value(v, present)
	return nil
}

func get(c *conn, tx *engine.Tx, _ [][]byte) error {
	v, present, err := tx.Get(c.keys[0], counter.ValueCounter)
	if err != nil {
		return err
	}
	c.w.value(v, present)
	return nil
}

// add adds to one counter without a transaction.
func (c *conn) add(key []byte, name string, by int64) error {
	k, err := parseKey(key)
	if err != nil {
		return err
	}
	if err := c.admit(); err != nil {
		return err
	}
	v, pos, err := c.engine.Add(k, name, by)
	c.after(pos)
	if err != nil {
		return err
	}
	c.w.int(v)
	return nil
}

// negated reads a decrement. -2^63 has no opposite.
func negated(b []byte) (int64, error) {
	n, err := integer(b)
	if err == nil && n == math.MinInt64 {
		return 0, replyError("ERR decrement would overflow")
	}
	return -n, err
}

// What an increment of counter value asks for.

func incrOf([][]byte) (name []byte, by int64, err error) { return nil, 1, nil }

func decrOf([][]byte) (name []byte, by int64, err error) { return nil, -1, nil }

func incrByOf(args [][]byte) (name []byte, by int64, err error) {
	by, err = integer(args[2])
	return nil, by, err
}

func decrByOf(args [][]byte) (name []byte, by int64, err error) {
	by, err = negated(args[2])
	return nil, by, err
}

// incrementHot runs a command that adds to one counter, by itself.
func incrementHot(c *conn, args [][]byte) error {
	name, by, err := c.cmd.increment(args)
	if err != nil {
		return err
	}
	if name == nil {
		return c.add(args[1], counter.ValueCounter, by)
	}
	return c.add(args[1], view(name), by)
}

// incrementTx does it inside a transaction.
func incrementTx(c *conn, tx *engine.Tx, args [][]byte) error {
	name, by, err := c.cmd.increment(args)
	if err != nil {
		return err
	}
	counterName := counter.ValueCounter
	if name != nil {
		counterName = view(name)
	}
	v, err := tx.Add(c.keys[0], counterName, by)
	if err != nil {
		return err
	}
	c.w.int(v)
	return nil
}

func refuseFloat(*conn, *engine.Tx, [][]byte) error { return errWholeNumbers }

func set(c *conn, tx *engine.Tx, args [][]byte) error {
	var nx, xx, old bool
	var exp expiryOption
	for i := 3; i < len(args); {
		next, err := exp.take(args, i, expiryKeep)
		switch {
		case err != nil:
			return err
		case next > i:
			i = next
			continue
		case is(args[i], "NX"):
			nx = true
		case is(args[i], "XX"):
			xx = true
		case is(args[i], "GET"):
			old = true
		default:
			return errSyntax
		}
		i++
	}
	if nx && xx {
		return errSyntax
	}
	v, err := integer(args[2])
	if err != nil {
		return err
	}
	at, err := exp.unixMilli(tx.Now(), "set")
	if err != nil {
		return err
	}
	k := c.keys[0]
	was, present, err := tx.Get(k, counter.ValueCounter)
	if err != nil {
		return err
	}
	exists, err := tx.Exists(k)
	if err != nil {
		return err
	}
	done := (!nx && !xx) || exists == xx
	if done {
		if err := tx.Set(k, counter.ValueCounter, v); err != nil {
			return err
		}
		if exp.kind != expiryKept {
			if err := tx.SetExpiry(k, at); err != nil {
				return err
			}
		}
	}
	switch {
	case old:
		c.w.value(was, present)
	case done:
		c.w.ok()
	default:
		c.w.null()
	}
	return nil
}

// setWith is SETEX and PSETEX.
func setWith(unit, name string) func(*conn, *engine.Tx, [][]byte) error {
	return func(c *conn, tx *engine.Tx, args [][]byte) error {
		v, err := integer(args[3])
		if err != nil {
			return err
		}
		var exp expiryOption
		if _, err := exp.take([][]byte{[]byte(unit), args[2]}, 0, 0); err != nil {
			return err
		}
		at, err := exp.unixMilli(tx.Now(), name)
		if err != nil {
			return err
		}
		if err := tx.Set(c.keys[0], counter.ValueCounter, v); err != nil {
			return err
		}
		c.w.ok()
		return tx.SetExpiry(c.keys[0], at)
	}
}

func setNX(c *conn, tx *engine.Tx, args [][]byte) error {
	v, err := integer(args[2])
	if err != nil {
		return err
	}
	exists, err := tx.Exists(c.keys[0])
	if err != nil {
		return err
	}
	if !exists {
		if err := tx.Set(c.keys[0], counter.ValueCounter, v); err != nil {
			return err
		}
	}
	c.w.flag(!exists)
	return nil
}

func getSet(c *conn, tx *engine.Tx, args [][]byte) error {
	v, err := integer(args[2])
	if err != nil {
		return err
	}
	if err := get(c, tx, args); err != nil {
		return err
	}
	if err := tx.Set(c.keys[0], counter.ValueCounter, v); err != nil {
		return err
	}
	return tx.SetExpiry(c.keys[0], 0)
}

func getDel(c *conn, tx *engine.Tx, args [][]byte) error {
	if err := get(c, tx, args); err != nil {
		return err
	}
	_, err := tx.Clear(c.keys[0], counter.ValueCounter)
	return err
}

func getEx(c *conn, tx *engine.Tx, args [][]byte) error {
	var exp expiryOption
	for i := 2; i < len(args); {
		next, err := exp.take(args, i, expiryPersist)
		if err != nil {
			return err
		}
		if next == i {
			return errSyntax
		}
		i = next
	}
	at, err := exp.unixMilli(tx.Now(), "getex")
	if err != nil {
		return err
	}
	v, present, err := tx.Get(c.keys[0], counter.ValueCounter)
	if err != nil {
		return err
	}
	c.w.value(v, present)
	if present && exp.kind != expiryNone {
		return tx.SetExpiry(c.keys[0], at)
	}
	return nil
}

func mgetHot(c *conn, args [][]byte) error {
	if len(args)-1 > counter.BatchMax {
		return c.transact(c.cmd, args)
	}
	c.keys = c.keys[:0]
	for _, b := range args[1:] {
		k, err := parseKey(b)
		if err != nil {
			return err
		}
		c.keys = append(c.keys, k)
	}
	c.names = append(c.names[:0], counter.ValueCounter)
	values, present := c.cells(len(c.keys))
	pos, err := c.engine.ReadBatch(c.keys, c.names, values, present, nil)
	if err != nil {
		return err
	}
	c.after(pos)
	c.w.array(len(values))
	for i, v := range values {
		c.w.value(v, present[i])
	}
	return nil
}

// cells returns room for n values as read.
func (c *conn) cells(n int) ([]int64, []bool) {
	if cap(c.ints) < n || cap(c.present) < n {
		c.ints, c.present = make([]int64, n), make([]bool, n)
	}
	return c.ints[:n], c.present[:n]
}

func mget(c *conn, tx *engine.Tx, _ [][]byte) error {
	c.w.array(len(c.keys))
	for _, k := range c.keys {
		v, present, err := tx.Get(k, counter.ValueCounter)
		if err != nil {
			return err
		}
		c.w.value(v, present)
	}
	return nil
}

// pairs reads the integers of key-integer pairs.
func (c *conn) pairs(args [][]byte) error {
	if len(args)%2 == 0 {
		return errorf("ERR wrong number of arguments for '%s' command", c.cmd.name)
	}
	c.ints = c.ints[:0]
	for i := 2; i < len(args); i += 2 {
		v, err := integer(args[i])
		if err != nil {
			return err
		}
		c.ints = append(c.ints, v)
	}
	return nil
}

func mset(c *conn, tx *engine.Tx, args [][]byte) error {
	if err := c.pairs(args); err != nil {
		return err
	}
	if err := c.msetAll(tx); err != nil {
		return err
	}
	c.w.ok()
	return nil
}

func msetNX(c *conn, tx *engine.Tx, args [][]byte) error {
	if err := c.pairs(args); err != nil {
		return err
	}
	for _, k := range c.keys {
		if exists, err := tx.Exists(k); exists || err != nil {
			c.w.flag(false)
			return err
		}
	}
	if err := c.msetAll(tx); err != nil {
		return err
	}
	c.w.flag(true)
	return nil
}

func (c *conn) msetAll(tx *engine.Tx) error {
	var u undo
	for i, k := range c.keys {
		if err := u.set(tx, k, counter.ValueCounter, c.ints[i]); err != nil {
			return u.back(tx, err)
		}
	}
	for _, k := range c.keys {
		if err := tx.SetExpiry(k, 0); err != nil {
			return err
		}
	}
	return nil
}

func incrEx(c *conn, tx *engine.Tx, args [][]byte) error {
	by, least, most := int64(1), int64(math.MinInt64), int64(math.MaxInt64)
	var saturate, enx, byGiven bool
	var exp expiryOption
	for i := 2; i < len(args); {
		next, err := exp.take(args, i, expiryPersist)
		if err != nil {
			return err
		}
		if next > i {
			i = next
			continue
		}
		var number *int64
		switch {
		case is(args[i], "BYFLOAT"):
			return errWholeNumbers
		case is(args[i], "BYINT") && !byGiven:
			number, byGiven = &by, true
		case is(args[i], "LBOUND"):
			number = &least
		case is(args[i], "UBOUND"):
			number = &most
		case is(args[i], "SATURATE"):
			saturate = true
		case is(args[i], "ENX"):
			enx = true
		default:
			return errSyntax
		}
		if i++; number != nil {
			if i == len(args) {
				return errSyntax
			}
			if *number, err = integer(args[i]); err != nil {
				return err
			}
			i++
		}
	}
	switch {
	case least > most:
		return replyError("ERR LBOUND is above UBOUND")
	case enx && exp.kind != expiryAt:
		return replyError("ERR ENX needs one of EX, PX, EXAT, PXAT: it sets an expiry where there is none")
	}
	at, err := exp.unixMilli(tx.Now(), "increx")
	if err != nil {
		return err
	}
	k := c.keys[0]
	was, _, err := tx.Get(k, counter.ValueCounter)
	if err != nil {
		return err
	}
	v, applied, done := bounded(was, by, least, most, saturate)
	if !done {
		c.pair(was, 0)
		return nil
	}
	if err := tx.Set(k, counter.ValueCounter, v); err != nil {
		return err
	}
	c.pair(v, applied)
	if exp.kind == expiryNone {
		return nil
	}
	if enx {
		if old, _, err := tx.Expiry(k); err != nil || old != 0 {
			return err
		}
	}
	return tx.SetExpiry(k, at)
}

// bounded adds by to was and holds the sum to [least, most]: outside it the add
// is not done, or with saturate stops at the bound. applied is the difference
// made, as far as 64 bits can say it.
func bounded(was, by, least, most int64, saturate bool) (v, applied int64, done bool) {
	sum, err := counter.Sum(was, by)
	switch {
	case err == nil && sum >= least && sum <= most:
		return sum, by, true
	case !saturate:
		return was, 0, false
	case err != nil && by > 0, err == nil && sum > most:
		v = most
	default:
		v = least
	}
	applied = v - was
	if (v > was) != (applied > 0) && v != was {
		return was, 0, false
	}
	return v, applied, true
}

func (c *conn) pair(a, b int64) {
	c.w.array(2)
	c.w.int(a)
	c.w.int(b)
}

func strLen(c *conn, tx *engine.Tx, _ [][]byte) error {
	v, present, err := tx.Get(c.keys[0], counter.ValueCounter)
	if err != nil {
		return err
	}
	c.w.int(digits(v, present))
	return nil
}

// digits counts the characters of a value as written.
func digits(v int64, present bool) int64 {
	if !present {
		return 0
	}
	var b [20]byte
	return int64(len(strconv.AppendInt(b[:0], v, 10)))
}
