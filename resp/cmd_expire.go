package resp

import (
	"math"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// expireCommands give whole objects a time to live.
var expireCommands = []command{
	{name: "expire", arity: -3, flags: write | fast, keys: oneKey, group: "generic", since: "1.0.0", syntax: "key seconds [NX | XX | GT | LT]",
		summary: "Sets when an object expires, in seconds from now.", tx: expireCommand(1000, true)},
	{name: "pexpire", arity: -3, flags: write | fast, keys: oneKey, group: "generic", since: "2.6.0", syntax: "key milliseconds [NX | XX | GT | LT]",
		summary: "Sets when an object expires, in milliseconds from now.", tx: expireCommand(1, true)},
	{name: "expireat", arity: -3, flags: write | fast, keys: oneKey, group: "generic", since: "1.2.0", syntax: "key unix-seconds [NX | XX | GT | LT]",
		summary: "Sets when an object expires, as unix time in seconds.", tx: expireCommand(1000, false)},
	{name: "pexpireat", arity: -3, flags: write | fast, keys: oneKey, group: "generic", since: "2.6.0", syntax: "key unix-milliseconds [NX | XX | GT | LT]",
		summary: "Sets when an object expires, as unix time in milliseconds.", tx: expireCommand(1, false)},
	{name: "ttl", arity: 2, flags: read | fast, keys: oneKey, group: "generic", since: "1.0.0", syntax: "key",
		summary: "Answers the seconds an object has left; -1: no expiry, -2: no object.", tx: ttlCommand(1000, true)},
	{name: "pttl", arity: 2, flags: read | fast, keys: oneKey, group: "generic", since: "2.6.0", syntax: "key",
		summary: "Answers the milliseconds an object has left; -1: no expiry, -2: no object.", tx: ttlCommand(1, true)},
	{name: "expiretime", arity: 2, flags: read | fast, keys: oneKey, group: "generic", since: "7.0.0", syntax: "key",
		summary: "Answers when an object expires, as unix time in seconds.", tx: ttlCommand(1000, false)},
	{name: "pexpiretime", arity: 2, flags: read | fast, keys: oneKey, group: "generic", since: "7.0.0", syntax: "key",
		summary: "Answers when an object expires, as unix time in milliseconds.", tx: ttlCommand(1, false)},
	{name: "persist", arity: 2, flags: write | fast, keys: oneKey, group: "generic", since: "2.2.0", syntax: "key",
		summary: "Removes an object's expiry.", tx: persist},
}

// expiryOption is the EX, PX, EXAT, PXAT, PERSIST or KEEPTTL of a command.
type expiryOption struct {
	kind     expiryKind
	value    int64
	unit     int64 // milliseconds of value's unit
	relative bool
}

type expiryKind uint8

const (
	expiryNone expiryKind = iota
	expiryAt              // a time is given
	expiryKept            // KEEPTTL
	expiryGone            // PERSIST
)

// What a command takes besides times.
const (
	expiryKeep    = 1 << iota // KEEPTTL
	expiryPersist             // PERSIST
)

// take reads an expiry option at args[i] and returns the index after it: i when
// there is none. A second one is a syntax error.
func (e *expiryOption) take(args [][]byte, i int, allowed int) (int, error) {
	was := e.kind
	next := i + 1
	switch {
	case is(args[i], "EX"):
		e.kind, e.unit, e.relative = expiryAt, 1000, true
	case is(args[i], "PX"):
		e.kind, e.unit, e.relative = expiryAt, 1, true
	case is(args[i], "EXAT"):
		e.kind, e.unit, e.relative = expiryAt, 1000, false
	case is(args[i], "PXAT"):
		e.kind, e.unit, e.relative = expiryAt, 1, false
	case is(args[i], "KEEPTTL") && allowed&expiryKeep != 0:
		e.kind = expiryKept
	case is(args[i], "PERSIST") && allowed&expiryPersist != 0:
		e.kind = expiryGone
	default:
		return i, nil
	}
	if was != expiryNone || (e.kind == expiryAt && next == len(args)) {
		return i, errSyntax
	}
	if e.kind == expiryAt {
		v, err := integer(args[next])
		if err != nil {
			return i, err
		}
		e.value = v
		next++
	}
	return next, nil
}

// unixMilli is the time that the option names, 0 when it names none.
func (e *expiryOption) unixMilli(now int64, command string) (int64, error) {
	if e.kind != expiryAt {
		return 0, nil
	}
	at, ok := absolute(e.value, e.unit, now, e.relative)
	if !ok || e.value <= 0 {
		return 0, badExpiry(command)
	}
	return at, nil
}

func badExpiry(command string) error {
	return errorf("ERR invalid expire time in '%s' command", command)
}

// absolute converts a time to unix milliseconds; ok is false when they overflow.
func absolute(value, unit, now int64, relative bool) (at int64, ok bool) {
	if value > math.MaxInt64/unit || value < math.MinInt64/unit {
		return 0, false
	}
	at = value * unit
	if !relative {
		return at, true
	}
	at, err := counter.Sum(at, now)
	return at, err == nil
}

// condition is the NX, XX, GT or LT of an expire command.
type condition struct{ nx, xx, gt, lt bool }

// take reads one condition and reports whether there was one.
func (c *condition) take(arg []byte) bool {
	switch {
	case is(arg, "NX"):
		c.nx = true
	case is(arg, "XX"):
		c.xx = true
	case is(arg, "GT"):
		c.gt = true
	case is(arg, "LT"):
		c.lt = true
	default:
		return false
	}
	return true
}

func (c *condition) check() error {
	switch {
	case c.nx && (c.xx || c.gt || c.lt):
		return replyError("ERR NX and XX, GT or LT options at the same time are not compatible")
	case c.gt && c.lt:
		return replyError("ERR GT and LT options at the same time are not compatible")
	}
	return nil
}

// met tells whether an expiry may change from old (0: none) to at. No expiry
// counts as later than any.
func (c *condition) met(old, at int64) bool {
	return !(c.nx && old != 0 || c.xx && old == 0 || c.gt && (old == 0 || at <= old) || c.lt && old != 0 && at >= old)
}

func expireCommand(unit int64, relative bool) func(*conn, *engine.Tx, [][]byte) error {
	return func(c *conn, tx *engine.Tx, args [][]byte) error {
		var when condition
		for _, arg := range args[3:] {
			if !when.take(arg) {
				return errorf("ERR Unsupported option %s", arg)
			}
		}
		if err := when.check(); err != nil {
			return err
		}
		value, err := integer(args[2])
		if err != nil {
			return err
		}
		at, ok := absolute(value, unit, tx.Now(), relative)
		if !ok {
			return badExpiry(c.cmd.name)
		}
		k := c.keys[0]
		old, exists, err := tx.Expiry(k)
		if err != nil {
			return err
		}
		done := exists && when.met(old, at)
		c.w.flag(done)
		switch {
		case !done:
			return nil
		case at <= tx.Now():
			_, err = tx.Delete(k)
		default:
			err = tx.SetExpiry(k, at)
		}
		return err
	}
}

func ttlCommand(unit int64, relative bool) func(*conn, *engine.Tx, [][]byte) error {
	return func(c *conn, tx *engine.Tx, _ [][]byte) error {
		at, exists, err := tx.Expiry(c.keys[0])
		if err != nil {
			return err
		}
		c.w.int(timeLeft(at, exists, tx.Now(), unit, relative))
		return nil
	}
}

// timeLeft is what the TTL family answers, rounded to the unit as Redis does.
func timeLeft(at int64, exists bool, now, unit int64, relative bool) int64 {
	switch {
	case !exists:
		return -2
	case at == 0:
		return -1
	case relative:
		at = max(0, at-now)
	}
	if unit > 1 {
		at = (at + unit/2) / unit
	}
	return at
}

func persist(c *conn, tx *engine.Tx, _ [][]byte) error {
	at, _, err := tx.Expiry(c.keys[0])
	if err != nil {
		return err
	}
	c.w.flag(at != 0)
	if at == 0 {
		return nil
	}
	return tx.SetExpiry(c.keys[0], 0)
}
