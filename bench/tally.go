package main

import (
	"slices"
	"strconv"

	"github.com/tally-counter/tally/test/wire"
)

// Tally's own commands, as the benchmarks send them.

// appendTally queues one command that adds all objects; one reply follows.
func appendTally(c *wire.Conn, m model, objects []object) (replies int) {
	deltas := 0
	for _, o := range objects {
		deltas += present(o)
	}
	c.Begin(2 + 3*deltas)
	c.Arg("TALLY.MADD")
	c.ArgInt(int64(deltas))
	for _, o := range objects {
		for i, v := range o.values {
			if v != 0 {
				c.ArgBytes(key(m, o))
				c.Arg(m.counters[i])
				c.ArgInt(v)
			}
		}
	}
	return 1
}

// feedCommand reads feedObjects random objects with the counters of a feed.
func feedCommand() []string {
	keys := slices.Repeat([]string{"post:" + keyPlace}, feedObjects)
	return slices.Concat([]string{"TALLY.MGET", strconv.Itoa(feedObjects)}, keys, feedCounters)
}

// batchCommand adds 1 to counter value of batchDeltas random objects.
func batchCommand() []string {
	items := slices.Repeat([]string{"page:" + keyPlace, "value", "1"}, batchDeltas)
	return slices.Concat([]string{"TALLY.MADD", strconv.Itoa(batchDeltas)}, items)
}
