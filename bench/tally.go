package main

import (
	"slices"
	"strconv"

	"github.com/tally-counter/tally/test/wire"
)

// Tally's own commands, as the benchmarks send them.

// appendTally queues one command that adds all objects; one reply follows.
func appendTally(c *wire.Conn, m model, objects []object) (replies int) {
	if len(m.counters) == 1 {
		c.Begin(5 + 2*len(objects))
		for _, arg := range []string{"TALLY.MADD", "COUNTS", "COUNTER", m.counters[0]} {
			c.Arg(arg)
		}
		c.ArgInt(int64(len(objects)))
		for _, o := range objects {
			c.ArgBytes(key(m, o))
			c.ArgInt(o.values[0])
		}
		return 1
	}
	args := 4
	for _, o := range objects {
		args += 2 + 2*present(o)
	}
	c.Begin(args)
	for _, arg := range []string{"TALLY.MADD", "COUNTS", "DELTAS"} {
		c.Arg(arg)
	}
	c.ArgInt(int64(len(objects)))
	for _, o := range objects {
		c.ArgBytes(key(m, o))
		c.ArgInt(int64(present(o)))
		for i, v := range o.values {
			if v != 0 {
				c.Arg(m.counters[i])
				c.ArgInt(v)
			}
		}
	}
	return 1
}

// feedCommand reads the counters of a feed of feedObjects random objects.
func feedCommand() []string {
	head := []string{"TALLY.MGET", strconv.Itoa(len(feedCounters))}
	return slices.Concat(head, feedCounters, slices.Repeat([]string{"post:" + keyPlace}, feedObjects))
}

// batchCommand adds 1 to counter value of batchDeltas random objects.
func batchCommand() []string {
	head := []string{"TALLY.MADD", "COUNTS", "COUNTER", "value", strconv.Itoa(batchDeltas)}
	return slices.Concat(head, slices.Repeat([]string{"page:" + keyPlace, "1"}, batchDeltas))
}
