package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/tally-counter/tally/counter"
)

// cellOf is one cell of a page for tests.
type cellOf struct {
	row int
	col Column
	v   int64
}

// packed packs rows and checks that they come back.
func packed(t *testing.T, sep Key, keys []Key, list []cellOf) page {
	t.Helper()
	r := newRows(sep.IsText)
	defer r.free()
	for _, k := range keys {
		r.appendKey(k)
	}
	for _, c := range list {
		r.column(c.col).put(c.row, c.v)
	}
	b, n, ok := r.pack(nil, 0, r.n, sep)
	if !ok {
		t.Fatalf("%d rows do not fit a page", r.n)
	}
	data := slices.Clone(b[:n])
	name := AppendName(nil, sep)
	if rows, err := CheckPage(name, nil, data); err != nil || rows != len(keys) {
		t.Fatalf("CheckPage = %d, %v", rows, err)
	}
	got := []cellOf{}
	i := 0
	err := PageRows(name, data, func(k Key, cells []Cell) error {
		if k != keys[i] {
			t.Fatalf("key %d is %s, want %s", i, k, keys[i])
		}
		if row, ok := b.find(k, sep); !ok || row != i {
			t.Fatalf("find(%s) = %d, %v; want %d", k, row, ok, i)
		}
		for _, c := range cells {
			got = append(got, cellOf{i, c.Col, c.Value})
			if v, ok := memOf(b).get(b.header(), i, c.Col); !ok || v != c.Value {
				t.Fatalf("get(%d, %d) = %d, %v; want %d", i, c.Col, v, ok, c.Value)
			}
		}
		i++
		return nil
	})
	if err != nil || !slices.Equal(got, list) {
		t.Fatalf("cells %v, %v; want %v", got, err, list)
	}
	return b[:n]
}

func TestPageExtremes(t *testing.T) {
	num := func(ns ...uint64) (ks []Key) {
		for _, n := range ns {
			ks = append(ks, Key{Num: n})
		}
		return ks
	}
	text := func(ss ...string) (ks []Key) {
		for _, s := range ss {
			ks = append(ks, Key{Text: s, IsText: true})
		}
		return ks
	}
	wide := func(v int64) (list []cellOf) {
		for c := range columnsMax {
			list = append(list, cellOf{0, Column(c), v})
		}
		return list
	}
	long := strings.Repeat("x", 511)
	packed(t, Key{}, num(0), []cellOf{{0, 0, 0}})
	packed(t, Key{}, num(math.MaxUint64), []cellOf{{0, ColumnMax, math.MinInt64}})
	packed(t, Key{}, num(0, math.MaxUint64), []cellOf{{0, 0, math.MaxInt64}, {1, 0, math.MinInt64}})
	packed(t, Key{Num: math.MaxUint64}, num(math.MaxUint64), []cellOf{{0, 0, -1}})
	packed(t, Key{}, num(0, 1, 2, 1<<63, 1<<63+1, math.MaxUint64-1, math.MaxUint64), []cellOf{{0, 1, 1}, {1, 0, 2}, {2, 9, 3}, {3, 1, 0}, {4, 4095, 5}, {5, 0, 6}, {6, 7, 7}})
	packed(t, Key{}, num(5), wide(math.MaxInt64))
	packed(t, Key{}, num(5), wide(0))
	packed(t, Key{IsText: true}, text(""), []cellOf{{0, 0, 1}})
	packed(t, Key{IsText: true}, text("", "\x00", "\x00\x00", "a", long, long+"x", long+"y"), []cellOf{{0, 0, 1}, {1, 0, 1}, {2, 0, 1}, {3, 0, 1}, {4, 0, 1}, {5, 0, 1}, {6, 0, 1}})
}

// Every value stands on every level of every form, in both signs.
func TestPageForms(t *testing.T) {
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	for range 3000 {
		n := 1 + r.Intn(rowsMax)
		if r.Intn(3) == 0 {
			n = 1 + r.Intn(4)
		}
		keys, base := make([]Key, n), uint64(0)
		step := uint64(1) << r.Intn(55)
		for i := range keys {
			base += 1 + uint64(r.Int63n(int64(step)))
			keys[i].Num = base
		}
		var list []cellOf
		width, density := 1+r.Intn(64), r.Float64()
		for i := range n {
			list = append(list, cellOf{i, 0, 1})
			for _, col := range []Column{3, 9} {
				if r.Float64() < density {
					v := int64(r.Uint64() >> (64 - r.Intn(width) - 1))
					if r.Intn(8) == 0 {
						v = edgeValues[r.Intn(len(edgeValues))]
					}
					if col == 9 && r.Intn(2) == 0 {
						v = -v
					}
					list = append(list, cellOf{i, col, v})
				}
			}
		}
		packed(t, Key{Num: keys[0].Num - uint64(r.Int63n(int64(keys[0].Num)+1))}, keys, list)
	}
}

func TestSelectAndCopy(t *testing.T) {
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	for range 20000 {
		b := make([]byte, 64+2*padBytes)
		r.Read(b[:64])
		zeros := 0
		for p := range 512 {
			if get(b, p, 1) == 0 {
				if got := memOf(b).selectZero(0, zeros); got != p {
					t.Fatalf("selectZero(%d) = %d, want %d", zeros, got, p)
				}
				if zeros++; r.Intn(8) == 0 {
					break
				}
			}
		}
		s, n := r.Intn(200), r.Intn(300)
		d := r.Intn(200)
		dst := make([]byte, len(b))
		copyBits(memOf(dst), d, memOf(b), s, n)
		for i := range n {
			if get(dst, d+i, 1) != get(b, s+i, 1) {
				t.Fatalf("copyBits of %d bits from %d to %d: bit %d differs", n, s, d, i)
			}
		}
		if d > 0 && get(dst, d-1, 1) != 0 {
			t.Fatalf("copyBits changed the bit before")
		}
	}
}

func TestDivide(t *testing.T) {
	for _, c := range []struct{ l, r, want Key }{
		{Key{Num: 0}, Key{Num: 1}, Key{Num: 1}},
		{Key{Num: 5}, Key{Num: 9}, Key{Num: 8}},
		{Key{Num: 7}, Key{Num: math.MaxUint64}, Key{Num: 1 << 63}},
		{Key{IsText: true}, Key{Text: "abc", IsText: true}, Key{Text: "a", IsText: true}},
		{Key{Text: "user/17", IsText: true}, Key{Text: "user/2345", IsText: true}, Key{Text: "user/2", IsText: true}},
		{Key{Text: "ab", IsText: true}, Key{Text: "abc", IsText: true}, Key{Text: "abc", IsText: true}},
	} {
		if got := divide(c.l, c.r); got != c.want {
			t.Errorf("divide(%s, %s) = %s, want %s", c.l, c.r, got, c.want)
		}
	}
}

// Flipped bits in stored pages are refused or decode to something well-formed.
func TestCheckPageFlips(t *testing.T) {
	for _, sep := range []Key{{Num: 100}, {IsText: true}} {
		keys := []Key{{Num: 101}, {Num: 200}, {Num: 9000}}
		if sep.IsText {
			keys = []Key{{Text: "alpha", IsText: true}, {Text: "alphabet", IsText: true}, {Text: "beta", IsText: true}}
		}
		b := packed(t, sep, keys, []cellOf{{0, 0, 1}, {0, 5, -3}, {1, 0, 700}, {2, 0, math.MaxInt64}})
		name := AppendName(nil, sep)
		for i := range 8 * len(b) {
			c := slices.Clone(b)
			c[i/8] ^= 1 << (i % 8)
			CheckPage(name, nil, c)
			if _, err := CheckPage(name, nil, c[:i/8]); err == nil {
				t.Fatalf("a page cut to %d of %d bytes is accepted", i/8, len(b))
			}
		}
	}
}

// pageSeeds are pages to begin fuzzing with.
func pageSeeds(f *testing.F) {
	var t testing.T
	f.Add(false, []byte(packed(&t, Key{}, []Key{{Num: 1}, {Num: 70}}, []cellOf{{0, 0, 1}, {1, 0, 300}, {1, 3, -5}})))
	f.Add(true, []byte(packed(&t, Key{IsText: true}, []Key{{Text: "a", IsText: true}, {Text: "ab", IsText: true}}, []cellOf{{0, 0, 1}, {1, 0, 1 << 40}})))
	var texts []Key
	var ones []cellOf
	for i := range 40 {
		texts = append(texts, Key{Text: "key/" + string(rune('0'+i)) + "tail of eighteen", IsText: true})
		ones = append(ones, cellOf{i, 0, 1})
	}
	f.Add(true, []byte(packed(&t, Key{IsText: true}, texts, ones)))
	wide := []cellOf{}
	for c := range 40 {
		wide = append(wide, cellOf{c % 2, Column(c), int64(c)})
	}
	slices.SortStableFunc(wide, func(a, b cellOf) int { return a.row - b.row })
	f.Add(false, []byte(packed(&t, Key{}, []Key{{Num: 1 << 20}, {Num: 1 << 60}}, wide)))
}

// FuzzCheckPage: no bytes make the checks panic, and what they accept packs again
// to a page with the same rows.
func FuzzCheckPage(f *testing.F) {
	pageSeeds(f)
	f.Fuzz(func(t *testing.T, text bool, data []byte) {
		sep := Key{IsText: text}
		name := AppendName(nil, sep)
		r, err := checked(name, nil, data)
		if err != nil {
			return
		}
		defer r.free()
		again, n, ok := r.pack(nil, 0, r.n, sep)
		if !ok {
			if len(data) < 1<<15 {
				t.Fatalf("an accepted page of %d bytes does not pack", len(data))
			}
			return
		}
		b := page(append(slices.Clone(data), make([]byte, padBytes)...))
		i := 0
		var cells []Cell
		if err := PageRows(name, again[:n], func(k Key, got []Cell) error {
			if row, ok := b.find(k, sep); !ok || row != i {
				t.Fatalf("key %s is row %d, %v; want %d", k, row, ok, i)
			}
			if cells = b.cells(cells[:0], i); !slices.Equal(cells, got) {
				t.Fatalf("row %d is %v, packed again %v", i, cells, got)
			}
			i++
			return nil
		}); err != nil || i != r.n {
			t.Fatalf("packed again: %d rows of %d, %v", i, r.n, err)
		}
	})
}

// FuzzCheckChunk: no bytes make the check panic, and what it accepts is written
// again the same.
func FuzzCheckChunk(f *testing.F) {
	f.Add([]byte("i\x00\x00\x00\x00\x00\x00\x00\x00"), []byte{1, 1, 5, 6, 200, 1})
	f.Add([]byte("s"), []byte{1, 1, 5, 6, 0, 2, 'a', 'b'})
	f.Fuzz(func(t *testing.T, name, data []byte) {
		var d directory
		if d.parse(name, data) != nil {
			return
		}
		got := chunk(d.pack(nil, 0, len(d.seps))).appendRecord(nil)
		// A uvarint may be written longer than it need be.
		if len(got) > len(data) || len(got) == len(data) && !bytes.Equal(got, data) {
			t.Fatalf("%x is written again as %x", data, got)
		}
	})
}

// FuzzPageOps runs a program of adds, sets, clears and deletes on a table and a
// model.
func FuzzPageOps(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07"))
	f.Add(bytes.Repeat([]byte{0, 1, 0, 9, 0, 0, 0, 0, 0, 7, 1, 0, 3, 0, 0, 0}, 40))
	f.Fuzz(func(t *testing.T, program []byte) {
		pool := NewPool()
		defer pool.Close()
		tab := New(pool, nil)
		tab.limits = limits{pageBytes: 150, chunkPages: 3}
		want := model{}
		for ; len(program) >= 8; program = program[8:] {
			w := binary.LittleEndian.Uint64(program)
			k := Key{Num: w >> 8 & 0xff << (w >> 16 & 0x3f)}
			if w>>22&3 == 0 {
				k = Key{Text: strings.Repeat("k", int(w>>24&7)) + string(rune(w>>8&0xff)), IsText: true}
			}
			col := Column(w >> 32 & 3)
			v := int64(int8(w>>40)) << (w >> 48 & 0x3f)
			if err := applyOp(tab, want, int(w&3), k, col, v); err != nil {
				t.Fatal(err)
			}
		}
		same(t, tab, want)
	})
}

func applyOp(tab *Table, want model, op int, k Key, col Column, v int64) error {
	var c Cursor
	if err := tab.Seek(&c, k); err != nil {
		return err
	}
	switch op {
	case 0:
		if sum, err := tab.Add(k, col, v); err == nil {
			want.set(k, col, sum)
		}
	case 1:
		want.set(k, col, v)
		return c.Set(col, v)
	case 2:
		want.clear(k, col)
		_, err := c.Clear(col)
		return err
	case 3:
		delete(want, string(AppendName(nil, k)))
		_, err := c.Delete()
		return err
	}
	return nil
}

// A page that cannot be read, or is damaged, is named by the error and changes
// nothing; once it can be read all is well.
func TestDamagedPages(t *testing.T) {
	pool := NewPool()
	defer pool.Close()
	s := newStore()
	tab := s.open(t, pool, limits{pageBytesMax, chunkPages})
	want := model{}
	for i := range uint64(5000) {
		k := Key{Num: i * 1001}
		if _, err := tab.Add(k, 0, 3); err != nil {
			t.Fatal(err)
		}
		want.set(k, 0, 3)
	}
	if next, err := tab.Collect(nil, 1<<30, sink(t, s.pages), sink(t, s.chunks)); next != nil || err != nil {
		t.Fatalf("Collect = %x, %v", next, err)
	}
	tab.Flushed(true)
	tab.Evict(1 << 30)
	tab.Evict(1 << 30)
	if n, _ := tab.Pages(); n != 0 {
		t.Fatalf("%d pages stay in memory", n)
	}
	whole := s.pages
	for _, c := range []struct {
		kind  error
		pages map[string][]byte
	}{
		{counter.ErrNotFound, nil},
		{counter.ErrCorrupt, map[string][]byte{}},
	} {
		if c.pages != nil {
			for name, b := range whole {
				c.pages[name] = append([]byte{b[0] + 1}, b[1:]...) // another number of rows
			}
		}
		s.pages = c.pages
		var cur Cursor
		k := Key{Num: 1001}
		_, addErr := tab.Add(k, 0, 1)
		errs := make([]error, 1)
		tab.AddBatch([]Key{k}, []Column{0}, []int64{1}, make([]int64, 1), errs)
		for i, err := range []error{tab.Seek(&cur, k), addErr, errs[0],
			tab.GetBatch([]Key{k}, []Column{0}, make([]int64, 1), make([]bool, 1)),
			tab.Scan(Key{}, func(Key, *Cursor) bool { return true })} {
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), "page") {
				t.Errorf("call %d: %v, want %v", i, err, c.kind)
			}
		}
	}
	s.pages = whole
	same(t, tab, want)
}

func TestAddAllocatesNothing(t *testing.T) {
	pool := NewPool()
	defer pool.Close()
	tab := New(pool, nil)
	for i := range uint64(100_000) {
		if _, err := tab.Add(Key{Num: i * 7919}, 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	i := uint64(0)
	if n := testing.AllocsPerRun(20_000, func() {
		tab.Add(Key{Num: i % 1000 * 7919}, 0, 1)
		i++
	}); n != 0 {
		t.Fatalf("Add: %v allocations a call, want 0", n)
	}
}

// A table of a few rows takes a system page or two, an empty one nothing.
func TestSmallTables(t *testing.T) {
	pool := NewPool()
	defer pool.Close()
	tables := make([]*Table, 2000)
	for i := range tables {
		tables[i] = New(pool, nil)
	}
	if pool.Bytes() != 0 {
		t.Fatalf("empty tables take %d bytes", pool.Bytes())
	}
	for _, tab := range tables {
		for i := range uint64(3) {
			if _, err := tab.Add(Key{Num: i}, 0, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if each := pool.Bytes() / int64(len(tables)); each > 128 {
		t.Fatalf("a table of three rows takes %d bytes", each)
	}
	for _, tab := range tables {
		tab.Close()
	}
	pool.Trim()
	if pool.Bytes() != 0 {
		t.Fatalf("closed tables leave %d bytes", pool.Bytes())
	}
}

// Sequential ids of one counter fill pages of 255 rows; random ones about
// seven tenths of the limit.
func TestFill(t *testing.T) {
	for _, c := range []struct {
		name string
		key  func(i uint64) uint64
		want float64
	}{
		{"ordered", func(i uint64) uint64 { return i << 26 }, 0.93},
		{"random", func(i uint64) uint64 { return i * 0x9e3779b97f4a7c15 }, 0.55},
	} {
		pool := NewPool()
		tab := New(pool, nil)
		for i := range uint64(100_000) {
			if _, err := tab.Add(Key{Num: c.key(i)}, 0, 1); err != nil {
				t.Fatal(err)
			}
		}
		_, pages := tab.Pages()
		if fill := float64(tab.ResidentBytes()) / float64(pages) / 1024; fill < c.want {
			t.Errorf("%s: pages are filled to %.2f, want %.2f", c.name, fill, c.want)
		}
		pool.Close()
	}
}
