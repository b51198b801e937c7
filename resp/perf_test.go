package resp

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tally-counter/tally/engine"
)

// hotRequests are those that must not allocate in the protocol layer.
var hotRequests = [][]string{
	{"INCR", "post:1001"}, {"INCRBY", "post:1001", "5"}, {"DECR", "post:1001"}, {"HINCRBY", "post:1001", "like", "1"},
	{"GET", "post:1001"}, {"HGET", "post:1001", "like"}, {"HMGET", "post:1001", "like", "view", "none"}, {"HGETALL", "post:1001"},
	{"MGET", "post:1001", "post:1002"}, {"PING"}, {"TALLY.MGET", "2", "like", "view", "post:1001", "post:1002"},
	{"TALLY.ADD", "post:1001", "like", "1", "view", "2"}, {"TALLY.MADD", "COUNTS", "2", "post:1001", "like", "1", "post:1002", "like", "1"},
}

func TestHotRequestsDoNotAllocate(t *testing.T) {
	if raceDetector {
		t.Log("not measured: under the race detector pools give nothing back")
		return
	}
	s := newServer(t, Options{})
	for _, g := range []*gather{nil, newGather(s.engine)} {
		b := newBench(t, s)
		b.c.gather = g
		for _, args := range hotRequests {
			in := bytes.Repeat(encode(args...), 2*gatherMin)
			run := func() {
				if n := b.c.process(in, 1<<20); n != len(in) {
					t.Fatalf("%q: %d of %d bytes are taken", args, n, len(in))
				}
				b.c.finish()
				b.o.put(b.c)
				b.o.show(b.o.need())
				b.o.wrote(b.c, len(b.o.ready(b.c)))
			}
			run()
			if n := testing.AllocsPerRun(200, run); n != 0 {
				t.Errorf("%q, gathered %v: %v allocations in %d requests, want 0", args, g != nil, n, 2*gatherMin)
			}
		}
	}
}

// BenchmarkProcess is a pipeline of 16 through the protocol layer and the engine.
func BenchmarkProcess(b *testing.B) {
	for _, args := range hotRequests {
		b.Run(fmt.Sprint(args[0]), func(b *testing.B) {
			e := openEngine(b, engine.Options{Sync: engine.SyncNever})
			s, err := New(e, Options{})
			if err != nil {
				b.Fatal(err)
			}
			c := newBench(b, s)
			var in []byte
			for range 16 {
				in = append(in, encode(args...)...)
			}
			b.ReportAllocs()
			for i := 0; i < b.N; i += 16 {
				c.c.process(in, 1<<20)
				c.o.put(c.c)
				c.o.show(c.o.need())
				c.o.wrote(c.c, len(c.o.ready(c.c)))
			}
		})
	}
}

// BenchmarkReader is the parser alone, per request.
func BenchmarkReader(b *testing.B) {
	for _, args := range [][]string{{"INCR", "post:1001"}, {"HINCRBY", "post:1001", "like", "1"}} {
		b.Run(args[0], func(b *testing.B) {
			l := limits{request: 64 << 20, args: 1 << 20, bulk: 512 << 10, inline: 64 << 10}
			r := reader{limits: &l, words: new(words)}
			in := encode(args...)
			for b.Loop() {
				if _, n, _ := r.next(in); n != len(in) {
					b.Fatal(n)
				}
			}
		})
	}
}

// BenchmarkMAdd is TALLY.MADD of 1,000 deltas, per delta.
func BenchmarkMAdd(b *testing.B) {
	e := openEngine(b, engine.Options{Sync: engine.SyncNever})
	s, err := New(e, Options{})
	if err != nil {
		b.Fatal(err)
	}
	c := newBench(b, s)
	args := []string{"TALLY.MADD", "COUNTS", "1000"}
	for i := range 1000 {
		args = append(args, fmt.Sprintf("post:%d", i*7919), "like", "1")
	}
	in := encode(args...)
	for i := 0; i < b.N; i += 1000 {
		c.c.process(in, 1<<20)
		c.o.put(c.c)
		c.o.show(c.o.need())
		c.o.wrote(c.c, len(c.o.ready(c.c)))
	}
}
