package resp

import (
	"math/rand/v2"
	"strconv"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// hashCommands name the counter of an object: Redis' hashes.
var hashCommands = []command{
	{name: "hincrby", arity: 4, flags: write | fast, keys: oneKey, group: "hash", since: "2.0.0", syntax: "key counter delta",
		summary: "Adds to a counter.", hot: incrementHot, tx: incrementTx, increment: hincrByOf},
	{name: "hincrbyfloat", arity: 4, flags: write | fast, keys: oneKey, group: "hash", since: "2.6.0", syntax: "key counter delta",
		summary: "Refused: Tally counts whole numbers.", tx: refuseFloat},
	{name: "hget", arity: 3, flags: read | fast, keys: oneKey, group: "hash", since: "2.0.0", syntax: "key counter",
		summary: "Reads a counter.", hot: hgetHot, tx: hget},
	{name: "hmget", arity: -3, flags: read | fast, keys: oneKey, group: "hash", since: "2.0.0", syntax: "key counter [counter ...]",
		summary: "Reads counters of an object.", hot: hmgetHot, tx: hmget},
	{name: "hgetall", arity: 2, flags: read, keys: oneKey, group: "hash", since: "2.0.0", syntax: "key",
		summary: "Reads all counters of an object with their names.", hot: hgetallHot, tx: hgetall},
	{name: "hkeys", arity: 2, flags: read, keys: oneKey, group: "hash", since: "2.0.0", syntax: "key",
		summary: "Lists the names of an object's counters.", tx: hkeys},
	{name: "hvals", arity: 2, flags: read, keys: oneKey, group: "hash", since: "2.0.0", syntax: "key",
		summary: "Lists the values of an object's counters.", tx: hvals},
	{name: "hlen", arity: 2, flags: read | fast, keys: oneKey, group: "hash", since: "2.0.0", syntax: "key",
		summary: "Counts an object's counters.", tx: hlen},
	{name: "hexists", arity: 3, flags: read | fast, keys: oneKey, group: "hash", since: "2.0.0", syntax: "key counter",
		summary: "Tells whether an object has a counter.", tx: hexists},
	{name: "hstrlen", arity: 3, flags: read | fast, keys: oneKey, group: "hash", since: "3.2.0", syntax: "key counter",
		summary: "Counts the characters of a counter's value as written.", tx: hstrlen},
	{name: "hset", arity: -4, flags: write | fast, keys: oneKey, group: "hash", since: "2.0.0", syntax: "key counter integer [counter integer ...]",
		summary: "Sets counters of an object, all or none; answers how many are new.", tx: hset},
	{name: "hmset", arity: -4, flags: write | fast, keys: oneKey, group: "hash", since: "2.0.0", syntax: "key counter integer [counter integer ...]",
		summary: "Sets counters of an object, all or none.", tx: hmset},
	{name: "hsetnx", arity: 4, flags: write | fast, keys: oneKey, group: "hash", since: "2.0.0", syntax: "key counter integer",
		summary: "Sets a counter unless it is there.", tx: hsetNX},
	{name: "hdel", arity: -3, flags: write | fast, keys: oneKey, group: "hash", since: "2.0.0", syntax: "key counter [counter ...]",
		summary: "Removes counters; the object goes with its last one.", tx: hdel},
	{name: "hscan", arity: -3, flags: read, keys: oneKey, group: "hash", since: "2.8.0",
		syntax:  "key cursor [MATCH pattern] [COUNT count] [NOVALUES]",
		summary: "Lists an object's counters, all in one answer.", tx: hscan},
	{name: "hrandfield", arity: -2, flags: read, keys: oneKey, group: "hash", since: "6.2.0", syntax: "key [count [WITHVALUES]]",
		summary: "Picks counters of an object at random.", tx: hrandField},
	{name: "hgetdel", arity: -5, flags: write | fast, keys: oneKey, group: "hash", since: "8.0.0",
		syntax: "key FIELDS numfields counter [counter ...]", summary: "Reads counters and removes them.", tx: hgetDel},
}

func hincrByOf(args [][]byte) (name []byte, by int64, err error) {
	by, err = integer(args[3])
	return args[2], by, err
}

func hgetHot(c *conn, args [][]byte) error {
	k, err := parseKey(args[1])
	if err != nil {
		return err
	}
	v, present, pos, err := c.engine.Get(k, view(args[2]))
	if err != nil {
		return err
	}
	c.after(pos)
	c.w.value(v, present)
	return nil
}

func hget(c *conn, tx *engine.Tx, args [][]byte) error {
	v, present, err := tx.Get(c.keys[0], view(args[2]))
	if err != nil {
		return err
	}
	c.w.value(v, present)
	return nil
}

func hmgetHot(c *conn, args [][]byte) error {
	k, err := parseKey(args[1])
	if err != nil {
		return err
	}
	c.names = c.names[:0]
	for _, name := range args[2:] {
		c.names = append(c.names, view(name))
	}
	values, present := c.cells(len(c.names))
	_, pos, err := c.engine.Read(k, c.names, values, present)
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

func hmget(c *conn, tx *engine.Tx, args [][]byte) error {
	c.w.array(len(args) - 2)
	for _, name := range args[2:] {
		v, present, err := tx.Get(c.keys[0], view(name))
		if err != nil {
			return err
		}
		c.w.value(v, present)
	}
	return nil
}

func hgetallHot(c *conn, args [][]byte) error {
	k, err := parseKey(args[1])
	if err != nil {
		return err
	}
	values, pos, err := c.engine.ReadAll(k, c.values[:0])
	if err != nil {
		return err
	}
	c.after(pos)
	c.values = values
	c.w.counters(values)
	return nil
}

// counters writes names and values.
func (w *writer) counters(values []counter.Value) {
	w.dict(len(values))
	for _, v := range values {
		w.bulkString(v.Counter)
		w.bulkInt(v.Value)
	}
}

// all reads the counters of the transaction's object.
func (c *conn) all(tx *engine.Tx) (_ []counter.Value, err error) {
	c.values, err = tx.Values(c.keys[0], c.values[:0])
	return c.values, err
}

func hgetall(c *conn, tx *engine.Tx, _ [][]byte) error {
	values, err := c.all(tx)
	if err != nil {
		return err
	}
	c.w.counters(values)
	return nil
}

func hkeys(c *conn, tx *engine.Tx, _ [][]byte) error {
	values, err := c.all(tx)
	if err != nil {
		return err
	}
	c.w.array(len(values))
	for _, v := range values {
		c.w.bulkString(v.Counter)
	}
	return nil
}

func hvals(c *conn, tx *engine.Tx, _ [][]byte) error {
	values, err := c.all(tx)
	if err != nil {
		return err
	}
	c.w.array(len(values))
	for _, v := range values {
		c.w.bulkInt(v.Value)
	}
	return nil
}

func hlen(c *conn, tx *engine.Tx, _ [][]byte) error {
	values, err := c.all(tx)
	if err != nil {
		return err
	}
	c.w.int(int64(len(values)))
	return nil
}

func hexists(c *conn, tx *engine.Tx, args [][]byte) error {
	_, present, err := tx.Get(c.keys[0], view(args[2]))
	if err != nil {
		return err
	}
	c.w.flag(present)
	return nil
}

func hstrlen(c *conn, tx *engine.Tx, args [][]byte) error {
	v, present, err := tx.Get(c.keys[0], view(args[2]))
	if err != nil {
		return err
	}
	c.w.int(digits(v, present))
	return nil
}

// hsetAll sets counter-integer pairs, all or none, and counts the new ones.
func (c *conn) hsetAll(tx *engine.Tx, args [][]byte) (added int64, err error) {
	if len(args)%2 != 0 {
		return 0, errorf("ERR wrong number of arguments for '%s' command", c.cmd.name)
	}
	c.ints = c.ints[:0]
	for i := 3; i < len(args); i += 2 {
		v, err := integer(args[i])
		if err != nil {
			return 0, err
		}
		c.ints = append(c.ints, v)
	}
	var u undo
	for i, v := range c.ints {
		if err := u.set(tx, c.keys[0], view(args[2+2*i]), v); err != nil {
			return 0, u.back(tx, err)
		}
	}
	for _, b := range u.done {
		if !b.present {
			added++
		}
		// As in Redis, a value set anew has no expiry of its own any more.
		if err := tx.SetCounterExpiry(b.key, b.name, 0); err != nil {
			return 0, err
		}
	}
	return added, nil
}

func hset(c *conn, tx *engine.Tx, args [][]byte) error {
	added, err := c.hsetAll(tx, args)
	if err != nil {
		return err
	}
	c.w.int(added)
	return nil
}

func hmset(c *conn, tx *engine.Tx, args [][]byte) error {
	if _, err := c.hsetAll(tx, args); err != nil {
		return err
	}
	c.w.ok()
	return nil
}

func hsetNX(c *conn, tx *engine.Tx, args [][]byte) error {
	v, err := integer(args[3])
	if err != nil {
		return err
	}
	_, present, err := tx.Get(c.keys[0], view(args[2]))
	if err != nil {
		return err
	}
	if !present {
		if err := tx.Set(c.keys[0], view(args[2]), v); err != nil {
			return err
		}
	}
	c.w.flag(!present)
	return nil
}

func hdel(c *conn, tx *engine.Tx, args [][]byte) error {
	var removed int64
	for _, name := range args[2:] {
		was, err := tx.Clear(c.keys[0], view(name))
		if err != nil {
			return err
		}
		if was {
			removed++
		}
	}
	c.w.int(removed)
	return nil
}

// hscan answers everything at once: an object has at most counter.CountersMax
// counters. The cursor is therefore always 0.
func hscan(c *conn, tx *engine.Tx, args [][]byte) error {
	if _, err := cursorOf(args[2]); err != nil {
		return err
	}
	opts, err := parseScan(args[3:], true)
	if err != nil {
		return err
	}
	values, err := c.all(tx)
	if err != nil {
		return err
	}
	n := 0
	for _, v := range values {
		if opts.match(v.Counter) {
			values[n] = v
			n++
		}
	}
	c.w.array(2)
	c.w.bulkString("0")
	if opts.noValues {
		c.w.array(n)
	} else {
		c.w.array(2 * n)
	}
	for _, v := range values[:n] {
		c.w.bulkString(v.Counter)
		if !opts.noValues {
			c.w.bulkInt(v.Value)
		}
	}
	return nil
}

// randomFieldsMax bounds HRANDFIELD with repeats.
const randomFieldsMax = 1 << 16

func hrandField(c *conn, tx *engine.Tx, args [][]byte) error {
	count, withValues := int64(1), len(args) == 4
	if len(args) > 4 || (withValues && !is(args[3], "WITHVALUES")) {
		return errSyntax
	}
	if len(args) > 2 {
		var err error
		if count, err = integer(args[2]); err != nil {
			return err
		}
		if count < -randomFieldsMax || count > 1<<62 {
			return errorf("ERR value is out of range, must be above -%d", randomFieldsMax)
		}
	}
	values, err := c.all(tx)
	if err != nil {
		return err
	}
	if len(args) == 2 {
		if len(values) == 0 {
			c.w.null()
		} else {
			c.w.bulkString(values[rand.IntN(len(values))].Counter)
		}
		return nil
	}
	picked := values
	switch {
	case len(values) == 0:
	case count < 0:
		picked = make([]counter.Value, -count)
		for i := range picked {
			picked[i] = values[rand.IntN(len(values))]
		}
	case count < int64(len(values)):
		rand.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		picked = values[:count]
	}
	c.randomFields(picked, withValues)
	return nil
}

func (c *conn) randomFields(picked []counter.Value, withValues bool) {
	if withValues && !c.w.resp3 {
		c.w.array(2 * len(picked))
	} else {
		c.w.array(len(picked))
	}
	for _, v := range picked {
		if withValues && c.w.resp3 {
			c.w.array(2)
		}
		c.w.bulkString(v.Counter)
		if withValues {
			c.w.bulkInt(v.Value)
		}
	}
}

// fields reads "FIELDS numfields counter…" at args[at:], which must be all there is.
func fields(args [][]byte, at int) ([][]byte, error) {
	if at+2 > len(args) || !is(args[at], "FIELDS") {
		return nil, replyError("ERR Mandatory argument FIELDS is missing or not at the right position")
	}
	n, ok := parseInt(args[at+1])
	if !ok || n < 1 {
		return nil, replyError("ERR Number of fields must be a positive integer")
	}
	if n != int64(len(args)-at-2) {
		return nil, errorf("ERR The `numfields` parameter must match the number of arguments: it is %s, and %s follow",
			strconv.FormatInt(n, 10), strconv.Itoa(len(args)-at-2))
	}
	return args[at+2:], nil
}

func hgetDel(c *conn, tx *engine.Tx, args [][]byte) error {
	names, err := fields(args, 2)
	if err != nil {
		return err
	}
	if err := hmget(c, tx, args[2:]); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := tx.Clear(c.keys[0], view(name)); err != nil {
			return err
		}
	}
	return nil
}
