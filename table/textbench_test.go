package table

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"math/rand"
	"os"
	"strings"
	"testing"
)

// textIDs makes text ids of a kind. TALLY_NAMES names a file whose lines begin
// with the ids of the kind "names", up to a tab; without it, similar ones are
// made.
func textIDs(b *testing.B, kind string) (ids []string) {
	r := rand.New(rand.NewSource(1))
	switch kind {
	case "padded":
		for i := range 1_000_000 {
			ids = append(ids, fmt.Sprintf("%012d", i))
		}
	case "uuids":
		for range 200_000 {
			x, y := r.Uint64(), r.Uint64()
			ids = append(ids, fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", x>>32, x>>16&0xffff, x>>4&0xfff, 0x8000|y>>50, y&(1<<48-1)))
		}
	case "names":
		name := os.Getenv("TALLY_NAMES")
		if name == "" {
			heads := []string{"@types/", "react-", "babel-plugin", "eslint", "lodash."}
			tails := []string{"core", "util", "parse", "is", "map", "stream"}
			for i := range 100_000 {
				ids = append(ids, heads[r.Intn(len(heads))]+tails[r.Intn(len(tails))]+fmt.Sprint("-", i))
			}
			break
		}
		f, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan() && len(ids) < 100_000; {
			id, _, _ := strings.Cut(s.Text(), "\t")
			ids = append(ids, id)
		}
	}
	return ids
}

// textLoad is a sequence of text keys and the table each belongs to.
type textLoad struct {
	tabs  []*Table
	keys  []Key
	parts []int
}

// shuffled returns l in random order, the texts side by side, so that reading
// them costs little.
func (l *textLoad) shuffled(seed int64) (out textLoad) {
	order := rand.New(rand.NewSource(seed)).Perm(len(l.keys))
	var all strings.Builder
	for _, j := range order {
		all.WriteString(l.keys[j].Text)
	}
	at := 0
	for _, j := range order {
		end := at + len(l.keys[j].Text)
		out.keys = append(out.keys, Key{Text: all.String()[at:end], IsText: true})
		out.parts = append(out.parts, l.parts[j])
		at = end
	}
	out.tabs = l.tabs
	return out
}

// BenchmarkText works on 16 tables, as an engine of 16 partitions does, with ids
// in random order.
func BenchmarkText(b *testing.B) {
	for _, kind := range []string{"padded", "names", "uuids"} {
		b.Run(kind, func(b *testing.B) {
			l := textLoad{}
			for range 16 {
				pool := NewPool()
				b.Cleanup(func() { pool.Close() })
				l.tabs = append(l.tabs, New(pool, nil))
			}
			for _, id := range textIDs(b, kind) {
				h := fnv.New64a()
				h.Write([]byte(id))
				l.keys = append(l.keys, Key{Text: id, IsText: true})
				l.parts = append(l.parts, int(h.Sum64()>>7%16))
			}
			l = l.shuffled(2)
			b.Run("insert", func(b *testing.B) {
				for _, t := range l.tabs {
					t.Close()
				}
				perSliceOf(b, len(l.keys)-slice+1, func(i int) { l.tabs[l.parts[i]].Add(l.keys[i], 0, 1) })
				bytes, rows := int64(0), int64(0)
				for _, t := range l.tabs {
					bytes += t.ResidentBytes() + t.DirectoryBytes()
					rows += t.Rows()
				}
				b.ReportMetric(float64(bytes)/float64(rows), "B/row")
			})
			l = l.shuffled(3)
			benchTexts(b, &l)
		})
	}
}

func benchTexts(b *testing.B, l *textLoad) {
	n := len(l.keys)
	b.Run("add", func(b *testing.B) {
		b.ReportAllocs()
		perSlice(b, func(i int) { l.tabs[l.parts[i%n]].Add(l.keys[i%n], 0, 1) })
	})
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		var c Cursor
		perSlice(b, func(i int) {
			l.tabs[l.parts[i%n]].Seek(&c, l.keys[i%n])
			c.Get(0)
		})
	})
	var parts [16][]Key
	for i, p := range l.parts {
		parts[p] = append(parts[p], l.keys[i])
	}
	b.Run("hot", func(b *testing.B) { // what it takes when all is in the caches
		perSlice(b, func(i int) { l.tabs[0].Add(parts[0][i&1023], 0, 1) })
	})
	b.Run("find", func(b *testing.B) { // within a page
		k := parts[0][0]
		at, _ := l.tabs[0].locate(k)
		data := page(l.tabs[0].pool.slot(l.tabs[0].chunkAt(at).ref(at.page)))
		r := newRows(true)
		r.unpackKeys(data, Key{IsText: true})
		var p textPlace
		perSlice(b, func(i int) {
			m := memOf(data)
			m.seekText(m.header(), r.key(int(scatter(uint64(i))%uint64(r.n))).Text, &p)
		})
	})
	cols, deltas, values, errs := make([]Column, 64), make([]int64, 64), make([]int64, 64), make([]error, 64)
	for i := range deltas {
		deltas[i] = 1
	}
	present := make([]bool, 64)
	each := func(name string, op func(t *Table, keys []Key)) {
		b.Run(name, func(b *testing.B) {
			p, j := 0, 0
			perSlice(b, func(i int) {
				if i&63 != 0 {
					return
				}
				if j+64 > len(parts[p]) {
					p, j = (p+1)%16, 0
				}
				op(l.tabs[p], parts[p][j:j+64])
				j += 64
			})
		})
	}
	each("addbatch", func(t *Table, keys []Key) { t.AddBatch(keys, cols, deltas, values, errs) })
	each("getbatch", func(t *Table, keys []Key) { t.GetBatch(keys, cols[:1], values, present) })
}
