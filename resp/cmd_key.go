package resp

import (
	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// keyCommands are about whole objects.
var keyCommands = []command{
	{name: "del", arity: -2, flags: write, keys: allKeys, group: "generic", since: "1.0.0", syntax: "key [key ...]",
		summary: "Deletes objects with all their counters.", tx: del, slowFrom: slowKeys},
	{name: "unlink", arity: -2, flags: write | fast, keys: allKeys, group: "generic", since: "4.0.0", syntax: "key [key ...]",
		summary: "Deletes objects with all their counters.", tx: del, slowFrom: slowKeys},
	{name: "exists", arity: -2, flags: read | fast, keys: allKeys, group: "generic", since: "1.0.0", syntax: "key [key ...]",
		summary: "Counts how many of the keys exist; a key named twice counts twice.", tx: exists, slowFrom: slowKeys},
	{name: "touch", arity: -2, flags: read | fast, keys: allKeys, group: "generic", since: "3.2.1", syntax: "key [key ...]",
		summary: "Counts how many of the keys exist, and reads them.", tx: exists, slowFrom: slowKeys},
	{name: "type", arity: 2, flags: read | fast, keys: oneKey, group: "generic", since: "1.0.0", syntax: "key",
		summary: "Answers string for an object whose only counter is value, hash for any other, none for no object.", tx: typeOf},
	{name: "rename", arity: 3, flags: write, keys: twoKeys, group: "generic", since: "1.0.0", syntax: "key newkey",
		summary: "Gives an object another key, replacing what is there.", tx: rename},
	{name: "renamenx", arity: 3, flags: write | fast, keys: twoKeys, group: "generic", since: "1.0.0", syntax: "key newkey",
		summary: "Gives an object another key unless that exists.", tx: renameNX},
	{name: "copy", arity: -3, flags: write, keys: twoKeys, group: "generic", since: "6.2.0", syntax: "source destination [DB 0] [REPLACE]",
		summary: "Copies an object with its counters and expiry.", tx: copyObject},
	{name: "object", arity: -2, flags: read, keys: keySpec{2, 2, 1}, group: "generic", since: "2.2.3",
		syntax: "ENCODING key | FREQ key | IDLETIME key | REFCOUNT key | HELP", summary: "Answers what tools ask about an object.", tx: object},
}

func del(c *conn, tx *engine.Tx, _ [][]byte) error { return c.count(tx.Delete) }

func exists(c *conn, tx *engine.Tx, _ [][]byte) error { return c.count(tx.Exists) }

// count answers for how many of the request's keys is holds.
func (c *conn) count(is func(counter.Key) (bool, error)) error {
	var n int64
	for _, k := range c.keys {
		yes, err := is(k)
		if err != nil {
			return err
		}
		if yes {
			n++
		}
	}
	c.w.int(n)
	return nil
}

func typeOf(c *conn, tx *engine.Tx, _ [][]byte) error {
	values, err := c.all(tx)
	if err != nil {
		return err
	}
	c.w.simple(typeName(values))
	return nil
}

// typeName is the Redis type that an object of these counters passes for.
func typeName(values []counter.Value) string {
	switch {
	case len(values) == 0:
		return "none"
	case len(values) == 1 && values[0].Counter == counter.ValueCounter:
		return "string"
	}
	return "hash"
}

// move gives the object of keys[0] to keys[1] and reports whether it did.
func (c *conn) move(tx *engine.Tx, replace bool) (bool, error) {
	from, to := c.keys[0], c.keys[1]
	s, err := takeSnapshot(tx, from)
	if err != nil {
		return false, err
	}
	if !s.exists() {
		return false, errNoSuchKey
	}
	if !replace {
		if taken, err := tx.Exists(to); taken || err != nil {
			return false, err
		}
	}
	if from == to {
		return true, nil
	}
	if err := s.replace(tx, to); err != nil {
		return false, err
	}
	_, err = tx.Delete(from)
	return true, err
}

func rename(c *conn, tx *engine.Tx, _ [][]byte) error {
	if _, err := c.move(tx, true); err != nil {
		return err
	}
	c.w.ok()
	return nil
}

func renameNX(c *conn, tx *engine.Tx, _ [][]byte) error {
	moved, err := c.move(tx, false)
	if err != nil {
		return err
	}
	c.w.flag(moved)
	return nil
}

func copyObject(c *conn, tx *engine.Tx, args [][]byte) error {
	replace := false
	for i := 3; i < len(args); i++ {
		switch {
		case is(args[i], "REPLACE"):
			replace = true
		case is(args[i], "DB") && i+1 < len(args):
			i++
			if db, err := integer(args[i]); err != nil {
				return err
			} else if db != 0 {
				return replyError("ERR DB index is out of range")
			}
		default:
			return errSyntax
		}
	}
	from, to := c.keys[0], c.keys[1]
	if from == to {
		return replyError("ERR source and destination objects are the same")
	}
	s, err := takeSnapshot(tx, from)
	if err != nil {
		return err
	}
	taken, err := tx.Exists(to)
	if err != nil {
		return err
	}
	done := s.exists() && (replace || !taken)
	if done {
		if err := s.replace(tx, to); err != nil {
			return err
		}
	}
	c.w.flag(done)
	return nil
}

func object(c *conn, tx *engine.Tx, args [][]byte) error {
	sub := upper(args[1])
	if sub == "HELP" && len(args) == 2 {
		c.help("OBJECT", "ENCODING key", "FREQ key", "IDLETIME key", "REFCOUNT key")
		return nil
	}
	if len(args) != 3 || (sub != "ENCODING" && sub != "FREQ" && sub != "IDLETIME" && sub != "REFCOUNT") {
		return badSubcommand("OBJECT", args[1])
	}
	values, err := c.all(tx)
	if err != nil {
		return err
	}
	switch {
	case len(values) == 0:
		c.w.null()
	case sub == "FREQ":
		return replyError("ERR An LFU maxmemory policy is not selected, access frequency not tracked.")
	case sub == "IDLETIME":
		return replyError("ERR Tally does not keep the time of an object's last use")
	case sub == "REFCOUNT":
		c.w.int(1)
	case typeName(values) == "string":
		c.w.bulkString("int")
	default:
		c.w.bulkString("page") // rows of neighbouring objects, packed
	}
	return nil
}

// help answers the HELP of a command with subcommands.
func (c *conn) help(command string, lines ...string) {
	c.w.array(1 + len(lines))
	c.w.simple(command + " <subcommand> [<arg> ...]. Subcommands are:")
	for _, line := range lines {
		c.w.simple(line)
	}
}

func badSubcommand(command string, sub []byte) error {
	return errorf("ERR unknown subcommand or wrong number of arguments for '%.128s'. Try %s HELP.", sub, command)
}
