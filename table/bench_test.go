package table

import (
	"slices"
	"testing"
	"time"
)

// The benchmarks report the median of many short slices: other work on the
// machine spoils some slices, not the median. Small tables show the instructions
// an operation takes, large ones the waits for memory as well; bench/table does
// the latter.

// slice is the number of operations timed at once.
const slice = 512

// perSlice runs op b.N times or so and reports the time per operation.
func perSlice(b *testing.B, op func(i int)) { perSliceOf(b, b.N, op) }

func perSliceOf(b *testing.B, n int, op func(i int)) {
	var took []time.Duration
	for i := 0; i < n || len(took) < 9; {
		start := time.Now()
		for range slice {
			op(i)
			i++
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/slice, "median-ns/op")
	b.ReportMetric(float64(took[len(took)/20].Nanoseconds())/slice, "p5-ns/op")
}

func scatter(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// benchTable returns a table of n rows and how to draw one of their keys.
func benchTable(b *testing.B, n, columns int) (*Table, func(i int) Key) {
	pool := NewPool()
	b.Cleanup(func() { pool.Close() })
	t := New(pool, nil)
	key := func(i int) Key { return Key{Num: scatter(uint64(i))} }
	if columns > 1 {
		key = func(i int) Key { return Key{Num: uint64(i)<<22 | scatter(uint64(i))>>42} }
	}
	for i := range n {
		for c := range columns {
			v := int64(min(1/(1-float64(scatter(uint64(i*columns+c+1<<40))>>11)/(1<<53)), 1e15)) // Pareto
			if c == 3 {
				v *= 80
			}
			t.Add(key(i), Column(c), v)
		}
	}
	return t, func(i int) Key { return key(int(scatter(uint64(i)) % uint64(n))) }
}

func BenchmarkAdd(b *testing.B) {
	for _, c := range []struct {
		name    string
		columns int
	}{{"columns=1", 1}, {"columns=4", 4}} {
		b.Run(c.name, func(b *testing.B) {
			t, key := benchTable(b, 200_000, c.columns)
			b.ReportAllocs()
			b.ResetTimer()
			perSlice(b, func(i int) { t.Add(key(i), Column(i&(c.columns-1)), 1) })
		})
	}
}

func BenchmarkAddBatch(b *testing.B) {
	for _, c := range []struct {
		name    string
		columns int
	}{{"columns=1", 1}, {"columns=4", 4}} {
		b.Run(c.name, func(b *testing.B) {
			t, key := benchTable(b, 200_000, c.columns)
			keys, cols, deltas := make([]Key, 64), make([]Column, 64), make([]int64, 64)
			values, errs := make([]int64, 64), make([]error, 64)
			for i := range cols {
				cols[i], deltas[i] = Column(i&(c.columns-1)), 1
			}
			b.ResetTimer()
			perSlice(b, func(i int) {
				keys[i&63] = key(i)
				if i&63 == 63 {
					t.AddBatch(keys, cols, deltas, values, errs)
				}
			})
		})
	}
}

func BenchmarkGet(b *testing.B) {
	for _, c := range []struct {
		name    string
		columns int
	}{{"columns=1", 1}, {"columns=4", 4}} {
		b.Run(c.name, func(b *testing.B) {
			t, key := benchTable(b, 200_000, c.columns)
			var cur Cursor
			b.ResetTimer()
			perSlice(b, func(i int) {
				t.Seek(&cur, key(i))
				for col := range c.columns {
					cur.Get(Column(col))
				}
			})
		})
	}
}

func BenchmarkInsert(b *testing.B) {
	pool := NewPool()
	defer pool.Close()
	t := New(pool, nil)
	perSlice(b, func(i int) {
		if t.Rows() == 400_000 {
			t.Close()
		}
		t.Add(Key{Num: scatter(uint64(i))}, 0, 1)
	})
}

func BenchmarkInsertText(b *testing.B) {
	pool := NewPool()
	defer pool.Close()
	t := New(pool, nil)
	id := []byte("user/0000000000000000")
	perSlice(b, func(i int) {
		if t.Rows() == 200_000 {
			t.Close()
		}
		for x, j := scatter(uint64(i)), 5; j < len(id); x, j = x>>4, j+1 {
			id[j] = "0123456789abcdef"[x&15]
		}
		t.Add(Key{Text: view(id), IsText: true}, 0, 1)
	})
}

// BenchmarkTrim times Trim after 1,000 inserts into 200,000 rows.
func BenchmarkTrim(b *testing.B) {
	t, _ := benchTable(b, 200_000, 1)
	took := make([]time.Duration, 0, 100)
	next := uint64(1 << 50)
	for range 100 {
		for range 1000 {
			t.Add(Key{Num: scatter(next)}, 0, 1)
			next++
		}
		start := time.Now()
		t.pool.Trim()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns/op")
	b.ReportMetric(float64(took[len(took)*9/10].Nanoseconds()), "p90-ns/op")
}
