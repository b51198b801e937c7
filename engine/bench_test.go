package engine

import (
	"testing"

	"github.com/tally-counter/tally/counter"
)

// benchEngine has n objects with one counter, random 64-bit ids.
func benchEngine(b *testing.B, n int) (*Engine, func(i int) counter.Key) {
	e, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	at := func(i int) counter.Key {
		return counter.Key{Namespace: "post", ID: counter.IntID(mix(uint64(i)))}
	}
	const step = 1000
	keys, names := make([]counter.Key, step), make([]string, step)
	by, values, errs := make([]int64, step), make([]int64, step), make([]error, step)
	for i := 0; i < n; i += step {
		for j := range keys {
			keys[j], names[j], by[j] = at(i+j), "like", 1
		}
		if _, err := e.AddEach(keys, names, by, values, errs); err != nil {
			b.Fatal(err)
		}
	}
	return e, at
}

func BenchmarkAdd(b *testing.B) {
	const n = 1_000_000
	e, at := benchEngine(b, n)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i%1000 == 0 {
			if err := e.Admit(); err != nil {
				b.Fatal(err)
			}
		}
		if _, _, err := e.Add(at(i*7919%n), "like", 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAddEach(b *testing.B) {
	const n, step = 1_000_000, 1000
	e, at := benchEngine(b, n)
	keys, names := make([]counter.Key, step), make([]string, step)
	by, values, errs := make([]int64, step), make([]int64, step), make([]error, step)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += step {
		for j := range keys {
			keys[j], names[j], by[j] = at((i+j)*7919%n), "like", 1
		}
		if _, err := e.AddEach(keys, names, by, values, errs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	const n = 1_000_000
	e, at := benchEngine(b, n)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, _, _, err := e.Get(at(i*7919%n), "like"); err != nil {
			b.Fatal(err)
		}
	}
}
