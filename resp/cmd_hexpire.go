package resp

import (
	"github.com/tally-counter/tally/engine"
)

// hashExpireCommands give single counters a time to live.
var hashExpireCommands = []command{
	{name: "hexpire", arity: -6, flags: write | fast, keys: oneKey, group: "hash", since: "7.4.0",
		syntax:  "key seconds [NX | XX | GT | LT] FIELDS numfields counter [counter ...]",
		summary: "Sets when counters expire, in seconds from now.", tx: hexpireCommand(1000, true)},
	{name: "hpexpire", arity: -6, flags: write | fast, keys: oneKey, group: "hash", since: "7.4.0",
		syntax:  "key milliseconds [NX | XX | GT | LT] FIELDS numfields counter [counter ...]",
		summary: "Sets when counters expire, in milliseconds from now.", tx: hexpireCommand(1, true)},
	{name: "hexpireat", arity: -6, flags: write | fast, keys: oneKey, group: "hash", since: "7.4.0",
		syntax:  "key unix-seconds [NX | XX | GT | LT] FIELDS numfields counter [counter ...]",
		summary: "Sets when counters expire, as unix time in seconds.", tx: hexpireCommand(1000, false)},
	{name: "hpexpireat", arity: -6, flags: write | fast, keys: oneKey, group: "hash", since: "7.4.0",
		syntax:  "key unix-milliseconds [NX | XX | GT | LT] FIELDS numfields counter [counter ...]",
		summary: "Sets when counters expire, as unix time in milliseconds.", tx: hexpireCommand(1, false)},
	{name: "httl", arity: -5, flags: read | fast, keys: oneKey, group: "hash", since: "7.4.0", syntax: "key FIELDS numfields counter [counter ...]",
		summary: "Answers the seconds counters have left; -1: no expiry, -2: no counter.", tx: httlCommand(1000, true)},
	{name: "hpttl", arity: -5, flags: read | fast, keys: oneKey, group: "hash", since: "7.4.0", syntax: "key FIELDS numfields counter [counter ...]",
		summary: "Answers the milliseconds counters have left; -1: no expiry, -2: no counter.", tx: httlCommand(1, true)},
	{name: "hexpiretime", arity: -5, flags: read | fast, keys: oneKey, group: "hash", since: "7.4.0", syntax: "key FIELDS numfields counter [counter ...]",
		summary: "Answers when counters expire, as unix time in seconds.", tx: httlCommand(1000, false)},
	{name: "hpexpiretime", arity: -5, flags: read | fast, keys: oneKey, group: "hash", since: "7.4.0", syntax: "key FIELDS numfields counter [counter ...]",
		summary: "Answers when counters expire, as unix time in milliseconds.", tx: httlCommand(1, false)},
	{name: "hpersist", arity: -5, flags: write | fast, keys: oneKey, group: "hash", since: "7.4.0", syntax: "key FIELDS numfields counter [counter ...]",
		summary: "Removes the expiry of counters.", tx: hpersist},
	{name: "hgetex", arity: -5, flags: write | fast, keys: oneKey, group: "hash", since: "8.0.0",
		syntax: "key [EX seconds | PX milliseconds | EXAT unix-seconds | PXAT unix-milliseconds | PERSIST]" +
			" FIELDS numfields counter [counter ...]",
		summary: "Reads counters and sets or removes their expiry.", tx: hgetEx},
	{name: "hsetex", arity: -6, flags: write | fast, keys: oneKey, group: "hash", since: "8.0.0",
		syntax: "key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-seconds | PXAT unix-milliseconds | KEEPTTL]" +
			" FIELDS numfields counter integer [counter integer ...]",
		summary: "Sets counters and their expiry, all or none.", tx: hsetEx},
}

// What the HEXPIRE family answers for one counter.
const (
	fieldAbsent  = -2
	fieldRefused = 0 // the condition is not met
	fieldSet     = 1
	fieldExpired = 2 // the time is past: the counter was removed
)

func hexpireCommand(unit int64, relative bool) func(*conn, *engine.Tx, [][]byte) error {
	return func(c *conn, tx *engine.Tx, args [][]byte) error {
		value, err := integer(args[2])
		if err != nil {
			return err
		}
		if value < 0 {
			return replyError("ERR invalid expire time, must be >= 0")
		}
		at, ok := absolute(value, unit, tx.Now(), relative)
		if !ok {
			return badExpiry(c.cmd.name)
		}
		var when condition
		i := 3
		for i < len(args) && when.take(args[i]) {
			i++
		}
		if err := when.check(); err != nil {
			return err
		}
		names, err := fields(args, i)
		if err != nil {
			return err
		}
		c.w.array(len(names))
		for _, name := range names {
			did, err := c.expireField(tx, view(name), at, &when)
			if err != nil {
				return err
			}
			c.w.int(did)
		}
		return nil
	}
}

func (c *conn) expireField(tx *engine.Tx, name string, at int64, when *condition) (int64, error) {
	k := c.keys[0]
	old, exists, err := tx.CounterExpiry(k, name)
	switch {
	case err != nil:
		return 0, err
	case !exists:
		return fieldAbsent, nil
	case !when.met(old, at):
		return fieldRefused, nil
	case at <= tx.Now():
		_, err := tx.Clear(k, name)
		return fieldExpired, err
	}
	return fieldSet, tx.SetCounterExpiry(k, name, at)
}

func httlCommand(unit int64, relative bool) func(*conn, *engine.Tx, [][]byte) error {
	return func(c *conn, tx *engine.Tx, args [][]byte) error {
		names, err := fields(args, 2)
		if err != nil {
			return err
		}
		c.w.array(len(names))
		for _, name := range names {
			at, exists, err := tx.CounterExpiry(c.keys[0], view(name))
			if err != nil {
				return err
			}
			c.w.int(timeLeft(at, exists, tx.Now(), unit, relative))
		}
		return nil
	}
}

func hpersist(c *conn, tx *engine.Tx, args [][]byte) error {
	names, err := fields(args, 2)
	if err != nil {
		return err
	}
	c.w.array(len(names))
	for _, name := range names {
		at, exists, err := tx.CounterExpiry(c.keys[0], view(name))
		if err != nil {
			return err
		}
		if at == 0 {
			c.w.int(timeLeft(at, exists, 0, 1, true)) // -1 or -2
			continue
		}
		if err := tx.SetCounterExpiry(c.keys[0], view(name), 0); err != nil {
			return err
		}
		c.w.int(fieldSet)
	}
	return nil
}

func hgetEx(c *conn, tx *engine.Tx, args [][]byte) error {
	var exp expiryOption
	i, err := exp.take(args, 2, expiryPersist)
	if err != nil {
		return err
	}
	names, err := fields(args, i)
	if err != nil {
		return err
	}
	at, err := exp.unixMilli(tx.Now(), "hgetex")
	if err != nil {
		return err
	}
	c.w.array(len(names))
	for _, name := range names {
		v, present, err := tx.Get(c.keys[0], view(name))
		if err != nil {
			return err
		}
		c.w.value(v, present)
		if present && exp.kind != expiryNone {
			if err := tx.SetCounterExpiry(c.keys[0], view(name), at); err != nil {
				return err
			}
		}
	}
	return nil
}

func hsetEx(c *conn, tx *engine.Tx, args [][]byte) error {
	var exp expiryOption
	var fnx, fxx bool
	i := 2
	for i < len(args) && !is(args[i], "FIELDS") {
		next, err := exp.take(args, i, expiryKeep)
		switch {
		case err != nil:
			return err
		case next > i:
			i = next
			continue
		case is(args[i], "FNX"):
			fnx = true
		case is(args[i], "FXX"):
			fxx = true
		default:
			return errorf("ERR unknown argument: %s", args[i])
		}
		i++
	}
	if fnx && fxx {
		return replyError("ERR Only one of FXX or FNX arguments can be specified")
	}
	at, err := exp.unixMilli(tx.Now(), "hsetex")
	if err != nil {
		return err
	}
	n, ok := int64(0), false
	if i+1 < len(args) {
		n, ok = parseInt(args[i+1])
	}
	if !ok || n < 1 || n > int64(len(args)) || len(args) != i+2+2*int(n) {
		return errorf("ERR wrong number of arguments for '%s' command", c.cmd.name)
	}
	set := args[i+2:]
	c.ints = c.ints[:0]
	met := true
	for j := 0; j < len(set); j += 2 {
		v, err := integer(set[j+1])
		if err != nil {
			return err
		}
		c.ints = append(c.ints, v)
		_, present, err := tx.Get(c.keys[0], view(set[j]))
		if err != nil {
			return err
		}
		met = met && !(fnx && present) && !(fxx && !present)
	}
	c.w.flag(met)
	if !met {
		return nil
	}
	var u undo
	for j, v := range c.ints {
		if err := u.set(tx, c.keys[0], view(set[2*j]), v); err != nil {
			return u.back(tx, err)
		}
	}
	if exp.kind == expiryKept {
		return nil
	}
	for _, b := range u.done {
		if err := tx.SetCounterExpiry(b.key, b.name, at); err != nil {
			return err
		}
	}
	return nil
}
