// Command table measures package table alone: one core, 16 partitions, rows of
// one counter under random 64-bit ids, or of four under time-ordered ids. It
// prints bytes a row as growth of the process and processor time per operation.
//
//	go run ./bench/table -rows 20000000 -case random|ordered [-partitions 16] [-ops 10000000]
package main

import (
	"flag"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/tally-counter/tally/table"
)

func main() {
	rows := flag.Int("rows", 20_000_000, "rows")
	kind := flag.String("case", "random", "random: 1 counter under random ids; ordered: 4 counters under time-ordered ids")
	partitions := flag.Int("partitions", 16, "tables, a power of two")
	ops := flag.Int("ops", 10_000_000, "adds and gets measured")
	seed := flag.Uint64("seed", 1, "seed of ids and values")
	profile := flag.String("profile", "", "write a CPU profile to this file")
	flag.Parse()
	var w workload
	switch *kind {
	case "random":
		w = workload{columns: 1, key: func(i int) uint64 { return mix(uint64(i) + *seed<<40) }}
	case "ordered":
		w = workload{columns: 4, key: orderedKeys(*rows, *seed)}
	default:
		fmt.Fprintf(os.Stderr, "table: -case %q: use random or ordered\n", *kind)
		os.Exit(2)
	}
	w.rows, w.random = *rows, rand.New(rand.NewPCG(*seed, 2))
	w.shift = uint(math.Log2(float64(*partitions)))
	fmt.Printf("%s, %d rows, %d counters, %d partitions, seed %d, %s %s/%s\n", *kind, *rows, w.columns, *partitions, *seed, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	w.before = residentSet()
	if *profile != "" {
		f, err := os.Create(*profile)
		check(err)
		check(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	w.load(*partitions)
	w.adds(*ops)
	w.gets(*ops)
	w.feeds(*ops / 200)
	w.batches(*ops)
	w.memory("after the adds")
	yardstick(*rows, *ops)
}

// yardstick measures the plainest table there is on this machine now: open
// addressing, 8 bytes id and 4 bytes count, load 0.9: 13.3 bytes a row.
func yardstick(rows, ops int) {
	size := uint64(rows) * 10 / 9
	ids, counts := make([]uint64, size), make([]uint32, size)
	find := func(id uint64) uint64 {
		at, _ := bits.Mul64(mix(id), size)
		for ids[at] != id && ids[at] != 0 {
			if at++; at == size {
				at = 0
			}
		}
		return at
	}
	for i := range rows {
		ids[find(mix(uint64(i)))] = mix(uint64(i))
	}
	r := rand.New(rand.NewPCG(3, 3))
	start := cpuTime()
	for range ops {
		counts[find(mix(uint64(r.IntN(rows))))]++
	}
	printRate("yardstick: plain array, add", cpuTime()-start, ops)
}

// mix is a bijection that scatters (splitmix64's finisher).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// orderedKeys returns ids as a snowflake generator gives them: ascending, with
// random gaps of 2^26 on average, so that the bound is about 26.5 bits a key. Key
// i is computed, so that the benchmark reads no array.
func orderedKeys(rows int, seed uint64) func(i int) uint64 {
	return func(i int) uint64 { return uint64(i)<<grid | mix(uint64(i)+seed<<40)>>(64-grid) }
}

// grid: one id falls at random into each cell of this many bits. The entropy of
// such ids is 26 bits.
const grid = 26

type workload struct {
	rows, columns int
	key           func(i int) uint64
	random        *rand.Rand
	shift         uint
	pools         []*table.Pool
	tables        []*table.Table
	before        int64
}

// at returns the table and the stored key of id n.
func (w *workload) at(n uint64) (*table.Table, table.Key) {
	q := n >> w.shift
	p := (n + mix(q)) & (1<<w.shift - 1)
	return w.tables[p], table.Key{Num: q}
}

// value draws an initial value: ALGORITHMS 4.1.
func (w *workload) value(col int) int64 {
	u := w.random.Float64()
	pareto := func(zero, alpha float64) int64 {
		if u < zero {
			return 0
		}
		return int64(math.Pow(1-w.random.Float64(), -1/alpha))
	}
	if w.columns == 1 {
		return pareto(0, 1)
	}
	switch col {
	case 0:
		return pareto(0.45, 1)
	case 1:
		return pareto(0.75, 1.2)
	case 2:
		return pareto(0.85, 1.2)
	}
	if u < 0.05 {
		return 0
	}
	return int64(80 * math.Exp(1.6*w.random.NormFloat64()))
}

func (w *workload) load(partitions int) {
	for range partitions {
		p := table.NewPool()
		w.pools = append(w.pools, p)
		w.tables = append(w.tables, table.New(p, nil))
	}
	var c table.Cursor
	start := cpuTime()
	for i := 0; i < w.rows; i++ {
		if w.columns == 1 {
			t, k := w.at(w.key(i))
			_, err := t.Add(k, 0, w.value(0))
			check(err)
			continue
		}
		t, k := w.at(w.key(i))
		check(t.Seek(&c, k))
		for col := range w.columns {
			if v := w.value(col); v != 0 || col == 3 {
				check(c.Set(table.Column(col), v))
			}
		}
	}
	w.report("insert (with drawing the values)", start, w.rows)
	w.memory("after the load")
}

func (w *workload) report(what string, start time.Duration, n int) {
	printRate(what, cpuTime()-start, n)
}

func printRate(what string, d time.Duration, n int) {
	fmt.Printf("%-34s %8.0f ns  %8.2f M/s\n", what, float64(d.Nanoseconds())/float64(n), float64(n)/d.Seconds()/1e6)
}

// cpuTime is the processor time used so far, so that other work on the machine
// counts for less.
func cpuTime() time.Duration {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (w *workload) memory(when string) {
	debug.FreeOSMemory()
	var slots, resident, directory, rows int64
	var pages int
	for i, t := range w.tables {
		w.pools[i].Trim()
		slots += w.pools[i].Bytes()
		resident += t.ResidentBytes()
		directory += t.DirectoryBytes()
		rows += t.Rows()
		_, n := t.Pages()
		pages += n
	}
	per := func(n int64) float64 { return float64(n) / float64(rows) }
	fmt.Printf("%s: %.3f B a row (process growth %.1f MB): slots %.3f, of them pages %.3f, directory %.3f; %.1f rows and %.0f B a page\n", when,
		per(residentSet()-w.before), float64(residentSet()-w.before)/1e6, per(slots), per(resident), per(directory), float64(rows)/float64(pages), float64(resident)/float64(pages))
}

// residentSet reads the process's resident memory, in bytes; 0 where there is no
// /proc.
func residentSet() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}

func (w *workload) adds(n int) {
	start := cpuTime()
	for range n {
		t, k := w.at(w.key(w.random.IntN(w.rows)))
		_, err := t.Add(k, table.Column(w.random.IntN(w.columns)), 1)
		check(err)
	}
	w.report("add to an existing row", start, n)
}

func (w *workload) gets(n int) {
	var c table.Cursor
	start := cpuTime()
	for range n {
		t, k := w.at(w.key(w.random.IntN(w.rows)))
		check(t.Seek(&c, k))
		if !c.Exists() {
			check(fmt.Errorf("row %d is missing", k.Num))
		}
		for col := range w.columns {
			c.Get(table.Column(col))
		}
	}
	w.report(fmt.Sprintf("get of a row (%d counters)", w.columns), start, n)
}

// feeds reads 50 rows of one table at a time.
func (w *workload) feeds(n int) {
	const rows = 50
	keys := make([]table.Key, rows)
	cols := make([]table.Column, w.columns)
	for i := range cols {
		cols[i] = table.Column(i)
	}
	values, present := make([]int64, rows*len(cols)), make([]bool, rows*len(cols))
	start := cpuTime()
	for range n {
		t := w.gather(keys)
		check(t.GetBatch(keys, cols, values, present))
	}
	w.report(fmt.Sprintf("get of %d rows (%d counters)", rows, w.columns), start, n)
}

// gather draws ids that fall into one table.
func (w *workload) gather(keys []table.Key) *table.Table {
	t := w.tables[w.random.IntN(len(w.tables))]
	for i := range keys {
		for {
			at, k := w.at(w.key(w.random.IntN(w.rows)))
			if at == t {
				keys[i] = k
				break
			}
		}
	}
	return t
}

// batches adds in batches of 64 to one table; drawing them is not counted.
func (w *workload) batches(n int) {
	const size, ahead = 64, 2048
	keys := make([]table.Key, size*ahead)
	tables := make([]*table.Table, ahead)
	cols, deltas := make([]table.Column, size), make([]int64, size)
	values, errs := make([]int64, size), make([]error, size)
	for i := range size {
		cols[i], deltas[i] = table.Column(i%w.columns), 1
	}
	var spent time.Duration
	done := 0
	for done < n {
		for i := range tables {
			tables[i] = w.gather(keys[i*size : (i+1)*size])
		}
		start := cpuTime()
		for i, t := range tables {
			t.AddBatch(keys[i*size:(i+1)*size], cols, deltas, values, errs)
		}
		spent += cpuTime() - start
		for _, err := range errs {
			check(err)
		}
		done += size * ahead
	}
	printRate("add in batches of 64", spent, done)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}
