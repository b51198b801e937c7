package crash

import (
	"fmt"
	"strconv"

	"github.com/tally-counter/tally/test/wire"
)

// Replies of Tally's own commands.

// readAdd reads the reply to TALLY.ADD: the outcome and each counter's value.
func readAdd(c *wire.Conn) (duplicate bool, values []int64, err error) {
	v, err := c.Read()
	if err != nil {
		return false, nil, err
	}
	items, ok := v.([]any)
	if !ok || len(items) < 2 || items[0] != "applied" && items[0] != "duplicate" {
		return false, nil, wrong("TALLY.ADD", v)
	}
	for _, item := range items[1:] {
		value, ok := item.(int64)
		if !ok {
			return false, nil, wrong("TALLY.ADD", v)
		}
		values = append(values, value)
	}
	return items[0] == "duplicate", values, nil
}

// readCounts reads the reply to TALLY.MADD with COUNTS and returns how many adds
// were applied.
func readCounts(c *wire.Conn) (applied int, err error) {
	v, err := c.Read()
	if err != nil {
		return 0, err
	}
	if e, ok := v.(wire.Error); ok {
		return 0, e
	}
	items, ok := v.([]any)
	if !ok || len(items) != 5 {
		return 0, wrong("TALLY.MADD", v)
	}
	n, ok := items[0].(int64)
	if !ok {
		return 0, wrong("TALLY.MADD", v)
	}
	return int(n), nil
}

// openSession opens the session of a producer.
func openSession(c *wire.Conn, producer string) (epoch, last int64, err error) {
	v, err := c.Do("TALLY.SESSION", "OPEN", producer)
	if err != nil {
		return 0, 0, err
	}
	items, ok := v.([]any)
	if !ok || len(items) != 2 {
		return 0, 0, wrong("TALLY.SESSION OPEN", v)
	}
	epoch, ok1 := items[0].(int64)
	last, ok2 := items[1].(int64)
	if !ok1 || !ok2 {
		return 0, 0, wrong("TALLY.SESSION OPEN", v)
	}
	return epoch, last, nil
}

// readFigure reads one figure of TALLY.STATS.
func readFigure(c *wire.Conn, name string) (int64, error) {
	v, err := c.Do("TALLY.STATS")
	if err != nil {
		return 0, err
	}
	items, _ := v.([]any)
	for i := 0; i+1 < len(items); i += 2 {
		if n, ok := items[i+1].(int64); ok && items[i] == name {
			return n, nil
		}
	}
	return 0, wrong("TALLY.STATS", "no figure "+name)
}

// read reads a counter's value as GET and HMGET give it; nil is 0.
func read(v any) (int64, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case string:
		return strconv.ParseInt(v, 10, 64)
	}
	return 0, wrong("a read", v)
}

// wrong is a reply that breaks the protocol or a promise, as opposed to a lost
// connection, which the suite causes itself.
func wrong(command string, reply any) error {
	return wrongReply(fmt.Sprintf("%s answered %v", command, reply))
}

type wrongReply string

func (w wrongReply) Error() string { return string(w) }
