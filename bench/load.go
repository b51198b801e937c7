package main

import (
	"errors"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tally-counter/tally/test/wire"
)

// object is what is loaded: an id and the values of its counters.
type object struct {
	id     uint64
	values []int64
}

// model makes the i-th object of a data set, the same every time. values may be
// used for the object's.
type model struct {
	namespace string
	counters  []string
	object    func(i uint64, values []int64) object
}

// The data sets. Counts in the wild are heavy-tailed: most are small, a few huge.
var (
	// randomIDs: random 64-bit ids with one counter, P(v ≥ x) = 1/x.
	randomIDs = model{"hash", []string{"value"}, func(i uint64, values []int64) object {
		r := rand.New(rand.NewPCG(i, 1))
		return object{mix(i), append(values, pareto(r, 1))}
	}}

	// timeOrdered: ids of 42 bits of milliseconds and 22 random bits, one about
	// every 6 ms, so that log2(e × the mean gap) is 26 bits, with four counters.
	// Every post was viewed; what never happened to it is not stored at all.
	timeOrdered = model{"post", feedCounters, func(i uint64, values []int64) object {
		r := rand.New(rand.NewPCG(i, 2))
		const began = 1_600_000_000_000
		return object{
			(began+i*6+r.Uint64N(6))<<22 | r.Uint64N(1<<22),
			append(values, rare(r, 0.45, 1), rare(r, 0.75, 1.2), rare(r, 0.85, 1.2),
				int64(min(max(80*math.Exp(1.6*r.NormFloat64()), 1), math.MaxInt32))),
		}
	}}

	// hotPages and hotPosts are the objects that redis-benchmark's random keys hit.
	hotPages = model{"page", []string{"value"}, func(i uint64, values []int64) object {
		return object{firstID + i, append(values, 1)}
	}}
	hotPosts = model{"post", feedCounters, func(i uint64, values []int64) object {
		o := timeOrdered.object(i, values)
		o.id = firstID + i
		return o
	}}

	feedCounters = []string{"like", "comment", "repost", "view"}
)

// mix maps 64 bits to 64 bits one to one and looks random (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// pareto returns v ≥ 1 with P(v ≥ x) = x^-a.
func pareto(r *rand.Rand, a float64) int64 {
	return int64(min(math.Pow(1-r.Float64(), -1/a), math.MaxInt32))
}

// rare is 0 with probability zero, else pareto.
func rare(r *rand.Rand, zero, a float64) int64 {
	if r.Float64() < zero {
		return 0
	}
	return pareto(r, a)
}

// loadBatch is how many objects travel together: commands in one pipeline to
// Redis, objects in one command to Tally.
const loadBatch = 1000

// loadConnections share the work.
const loadConnections = 4

// load creates objects 0 … n-1 of the model in p and returns how long it took.
func load(p peer, m model, n int) (time.Duration, error) {
	began := time.Now()
	var next atomic.Int64 // the batch to take
	var workers sync.WaitGroup
	failures := make([]error, loadConnections)
	for i := range loadConnections {
		workers.Go(func() { failures[i] = loadWorker(p, m, uint64(n), &next) })
	}
	workers.Wait()
	if err := errors.Join(failures...); err != nil {
		return 0, fmt.Errorf("loading %s: %w", p.column, err)
	}
	took := time.Since(began)
	log.Printf("%s: %d objects of %s × %d loaded in %v", p.column, n, m.namespace, len(m.counters), took.Round(time.Millisecond))
	return took, nil
}

func loadWorker(p peer, m model, n uint64, next *atomic.Int64) error {
	c, err := wire.Dial(p.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	appendBatch := appendRedis
	if p.isTally() {
		appendBatch = appendTally
	}
	objects := make([]object, 0, loadBatch)
	values := make([]int64, 0, loadBatch*len(m.counters))
	for {
		from := uint64(next.Add(1)-1) * loadBatch
		if from >= n {
			return nil
		}
		objects, values = objects[:0], values[:0]
		for i := from; i < min(from+loadBatch, n); i++ {
			o := m.object(i, values[len(values):])
			values = values[:len(values)+len(o.values)]
			objects = append(objects, o)
		}
		replies := appendBatch(c, m, objects)
		if err := c.Flush(); err != nil {
			return err
		}
		for range replies {
			if err := c.Skip(); err != nil {
				return err
			}
		}
	}
}

// appendRedis queues one command an object and returns how many replies follow.
func appendRedis(c *wire.Conn, m model, objects []object) (replies int) {
	for _, o := range objects {
		if len(m.counters) == 1 {
			c.Begin(3)
			c.Arg("INCRBY")
			c.ArgBytes(key(m, o))
			c.ArgInt(o.values[0])
			continue
		}
		c.Begin(2 + 2*present(o))
		c.Arg("HSET")
		c.ArgBytes(key(m, o))
		for i, name := range m.counters {
			if o.values[i] != 0 {
				c.Arg(name)
				c.ArgInt(o.values[i])
			}
		}
	}
	return len(objects)
}

func key(m model, o object) []byte {
	return strconv.AppendUint(append([]byte(m.namespace), ':'), o.id, 10)
}

// present counts the values of o that are stored.
func present(o object) (n int) {
	for _, v := range o.values {
		if v != 0 {
			n++
		}
	}
	return n
}
