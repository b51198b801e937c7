package table

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/tally-counter/tally/counter"
	"pgregory.net/rapid"
)

// store is a page store in memory.
type store struct{ pages, chunks map[string][]byte }

func newStore() *store { return &store{map[string][]byte{}, map[string][]byte{}} }

func (s *store) LoadPage(sep, dst []byte) ([]byte, error) {
	b, ok := s.pages[string(sep)]
	if !ok {
		return nil, fmt.Errorf("no page %q: %w", sep, counter.ErrNotFound)
	}
	return append(dst, b...), nil
}

func (s *store) clone() *store { return &store{maps.Clone(s.pages), maps.Clone(s.chunks)} }

// sink returns a function that applies changes to m and checks their order.
func sink(t fataler, m map[string][]byte) func(Change) error {
	last := ""
	return func(c Change) error {
		if string(c.Name) <= last {
			t.Fatalf("change %q follows %q", c.Name, last)
		}
		last = string(c.Name)
		if c.Data == nil {
			delete(m, last)
		} else {
			m[last] = slices.Clone(c.Data)
		}
		return nil
	}
}

type fataler interface{ Fatalf(string, ...any) }

// open loads a fresh table from the store.
func (s *store) open(t fataler, pool *Pool, l limits) *Table {
	tab := New(pool, s)
	tab.limits = l
	for _, name := range slices.Sorted(maps.Keys(s.chunks)) {
		if err := tab.LoadChunk([]byte(name), s.chunks[name]); err != nil {
			t.Fatalf("LoadChunk: %v", err)
		}
	}
	return tab
}

// verify checks the store offline: every chunk and page, and no page besides.
func (s *store) verify(t fataler) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.chunks)) {
		pages, _, err := CheckChunk([]byte(name), s.chunks[name])
		if err != nil {
			t.Fatalf("CheckChunk: %v", err)
		}
		for _, p := range pages {
			names = append(names, string(p))
		}
	}
	if !slices.IsSorted(names) {
		t.Fatalf("pages of the chunks do not ascend")
	}
	for i, name := range names {
		var upper []byte
		if i+1 < len(names) && names[i+1][0] == name[0] {
			upper = []byte(names[i+1])
		}
		if _, err := CheckPage([]byte(name), upper, s.pages[name]); err != nil {
			t.Fatalf("CheckPage: %v", err)
		}
	}
	if len(names) != len(s.pages) {
		t.Fatalf("%d pages stored, chunks list %d", len(s.pages), len(names))
	}
}

// model is what a table must be: rows by the written form of their key.
type model map[string]map[Column]int64

func (m model) set(k Key, col Column, v int64) {
	name := string(AppendName(nil, k))
	if m[name] == nil {
		m[name] = map[Column]int64{}
	}
	m[name][col] = v
}

func (m model) clear(k Key, col Column) {
	name := string(AppendName(nil, k))
	delete(m[name], col)
	if len(m[name]) == 0 {
		delete(m, name)
	}
}

// same checks that a scan of the table gives the model.
func same(t fataler, tab *Table, m model) {
	names := slices.Sorted(maps.Keys(m))
	i := 0
	err := tab.Scan(Key{}, func(k Key, c *Cursor) bool {
		name := string(AppendName(nil, k))
		if i >= len(names) || names[i] != name {
			t.Fatalf("row %d of the scan is %s, want %q", i, k, names[min(i, len(names)-1):])
		}
		row := m[name]
		cells := c.Cells(nil)
		if len(cells) != len(row) {
			t.Fatalf("row %s has cells %v, want %v", k, cells, row)
		}
		for _, cell := range cells {
			if v, ok := row[cell.Col]; !ok || v != cell.Value {
				t.Fatalf("row %s has cells %v, want %v", k, cells, row)
			}
		}
		i++
		return true
	})
	if err != nil {
		t.Fatalf("Scan: %v", err)
	}
	if i != len(names) || tab.Rows() != int64(len(names)) {
		t.Fatalf("the scan gave %d rows, Rows %d, want %d", i, tab.Rows(), len(names))
	}
}

var edgeValues = []int64{0, 1, 2, 3, 14, 15, 254, 255, 256, 65534, 65535, math.MaxUint32 - 1, math.MaxUint32, math.MaxUint32 + 1,
	-1, -2, -128, math.MinInt64, math.MinInt64 + 1, math.MaxInt64, math.MaxInt64 - 1}

var valueGen = rapid.OneOf(rapid.SampledFrom(edgeValues), rapid.Int64(), rapid.Int64Range(0, 20))

func keyGen() *rapid.Generator[Key] {
	num := func(n uint64) Key { return Key{Num: n} }
	text := func(s string) Key { return Key{Text: s, IsText: true} }
	return rapid.OneOf(
		rapid.Map(rapid.Uint64(), num),
		rapid.Map(rapid.Uint64Range(0, 300), num),
		rapid.Map(rapid.Uint64Range(1<<40, 1<<40+300), num),
		rapid.Map(rapid.SampledFrom([]uint64{0, 1, math.MaxUint64, math.MaxUint64 - 1, 1 << 63, 1<<63 - 1}), num),
		rapid.Map(rapid.StringMatching(`[ab]{0,6}`), text),
		rapid.Map(rapid.StringMatching(`user/[0-9]{1,3}`), text),
		rapid.Map(rapid.StringMatching(`(long){20,120}[ab]{0,2}`), text),
		rapid.Map(rapid.StringN(0, 10, 40), text),
	)
}

var columnGen = rapid.OneOf(rapid.Just(Column(0)), rapid.SampledFrom([]Column{1, 2, 3, ColumnMax}), rapid.Map(rapid.Uint16Range(0, 1100), func(c uint16) Column { return Column(c) }))

// machine drives a table, its page store and a model.
type machine struct {
	pool  *Pool
	tab   *Table
	other *Table // shares the pool, so that slots move between tables
	store *store
	want  model
	keys  []Key

	passing  bool // a pass of Collect is under way
	next     []byte
	touched  map[string]bool // rows that may have changed since the pass began
	staged   *store          // the store after the pass
	expected model           // its rows: each range as it was when captured
}

func (m *machine) touch(k Key) { m.touched[string(AppendName(nil, k))] = true }

// key draws a key to change.
func (m *machine) key(t *rapid.T) (k Key) {
	defer func() { m.touch(k) }()
	if len(m.keys) > 0 && rapid.IntRange(0, 3).Draw(t, "known") > 0 {
		return rapid.SampledFrom(m.keys).Draw(t, "key")
	}
	k = keyGen().Draw(t, "new key")
	if len(k.Text) > counter.IDBytesMax {
		k.Text = k.Text[:counter.IDBytesMax]
	}
	m.keys = append(m.keys, k)
	return k
}

func (m *machine) seek(t *rapid.T, k Key) *Cursor {
	var c Cursor
	if err := m.tab.Seek(&c, k); err != nil {
		t.Fatalf("Seek: %v", err)
	}
	m.check(t, &c, k)
	return &c
}

// check compares the cursor's row with the model.
func (m *machine) check(t *rapid.T, c *Cursor, k Key) {
	row, exists := m.want[string(AppendName(nil, k))]
	if c.Exists() != exists {
		t.Fatalf("%s exists: %v, want %v", k, c.Exists(), exists)
	}
	cells := c.Cells(nil)
	if len(cells) != len(row) {
		t.Fatalf("row %s has cells %v, want %v", k, cells, row)
	}
	for _, cell := range cells {
		v, ok := c.Get(cell.Col)
		if w, present := row[cell.Col]; !present || !ok || v != w || cell.Value != w {
			t.Fatalf("row %s column %d is %d and %d, want %d", k, cell.Col, v, cell.Value, w)
		}
	}
	if v, ok := c.Get(77); ok != func() bool { _, p := row[77]; return p }() || v != row[77] {
		t.Fatalf("row %s column 77 is %d, %v", k, v, ok)
	}
}

func (m *machine) add(t *rapid.T) {
	k, col, d := m.key(t), columnGen.Draw(t, "column"), valueGen.Draw(t, "delta")
	old := m.want[string(AppendName(nil, k))][col]
	want, sumErr := counter.Sum(old, d)
	v, err := m.tab.Add(k, col, d)
	if (err != nil) != (sumErr != nil) || err == nil && v != want {
		t.Fatalf("Add(%s, %d, %d) to %d = %d, %v", k, col, d, old, v, err)
	}
	if err == nil {
		m.want.set(k, col, v)
	}
}

func (m *machine) set(t *rapid.T) {
	k := m.key(t)
	c := m.seek(t, k)
	for range rapid.IntRange(1, 4).Draw(t, "cells") {
		col, v := columnGen.Draw(t, "column"), valueGen.Draw(t, "value")
		if err := c.Set(col, v); err != nil {
			t.Fatalf("Set: %v", err)
		}
		m.want.set(k, col, v)
		m.check(t, c, k)
	}
}

func (m *machine) run(t *rapid.T) {
	k := m.key(t)
	n := rapid.IntRange(1, 400).Draw(t, "rows")
	step := rapid.SampledFrom([]uint64{1, 3, 1 << 20, 1 << 50, ^uint64(0)}).Draw(t, "step")
	for i := range n {
		if k.IsText {
			k.Text = fmt.Sprintf("run%d", i)
		} else {
			k.Num += step
		}
		m.touch(k)
		if v, err := m.tab.Add(k, 0, 1); err == nil {
			m.want.set(k, 0, v)
			m.keys = append(m.keys, k)
		}
	}
}

func (m *machine) clear(t *rapid.T) {
	k, col := m.key(t), columnGen.Draw(t, "column")
	c := m.seek(t, k)
	_, want := m.want[string(AppendName(nil, k))][col]
	if was, err := c.Clear(col); err != nil || was != want {
		t.Fatalf("Clear = %v, %v; want %v", was, err, want)
	}
	m.want.clear(k, col)
	m.check(t, c, k)
}

func (m *machine) delete(t *rapid.T) {
	k := m.key(t)
	for range rapid.IntRange(1, 200).Draw(t, "rows") {
		m.touch(k)
		c := m.seek(t, k)
		_, want := m.want[string(AppendName(nil, k))]
		if was, err := c.Delete(); err != nil || was != want {
			t.Fatalf("Delete = %v, %v; want %v", was, err, want)
		}
		delete(m.want, string(AppendName(nil, k)))
		m.check(t, c, k)
		// Go on with the next row, so that pages and chunks run empty.
		found := false
		if err := m.tab.Scan(k, func(next Key, _ *Cursor) bool { k, found = next.clone(), true; return false }); err != nil {
			t.Fatalf("Scan: %v", err)
		}
		if !found {
			return
		}
	}
}

func (m *machine) collect(t *rapid.T) {
	if !m.passing {
		m.passing, m.next = true, nil
		m.staged = m.store.clone()
		m.expected, m.touched = model{}, map[string]bool{}
	}
	from := m.next
	bytes := rapid.SampledFrom([]int{0, 100, 3000, 1 << 20}).Draw(t, "bytes")
	next, err := m.tab.Collect(from, bytes, sink(t, m.staged.pages), sink(t, m.staged.chunks))
	if err != nil {
		t.Fatalf("Collect: %v", err)
	}
	for name, row := range m.want {
		if name >= string(from) && (next == nil || name < string(next)) {
			m.expected[name] = maps.Clone(row)
		}
	}
	m.next = next
	if next != nil {
		return
	}
	ok := rapid.Bool().Draw(t, "flushed")
	m.passing = false
	if ok {
		// What a crash now would leave is each range as it was captured.
		m.store = m.staged
		m.tab.loader = m.store
		m.store.verify(t)
		m.crash(t)
	}
	m.tab.Flushed(ok)
}

// crash loads what a crash now would leave: each row as it was when its range was
// captured. A row changed since the pass began may be missing, if the chunk it
// was in has gone. Replaying what changed since must give the table as it is.
func (m *machine) crash(t *rapid.T) {
	pool := NewPool()
	defer pool.Close()
	tab := m.store.open(t, pool, m.tab.limits)
	got := model{}
	if err := tab.Scan(Key{}, func(k Key, c *Cursor) bool {
		for _, cell := range c.Cells(nil) {
			got.set(k, cell.Col, cell.Value)
		}
		return true
	}); err != nil {
		t.Fatalf("Scan after a crash: %v", err)
	}
	names := maps.Clone(m.expected)
	maps.Copy(names, got)
	maps.Copy(names, m.want)
	for name := range names {
		changed := m.touched[name]
		if !maps.Equal(got[name], m.expected[name]) && !(changed && got[name] == nil) {
			t.Fatalf("row %q is %v after a crash, captured as %v", name, got[name], m.expected[name])
		}
		if changed {
			m.replay(t, tab, name)
		}
	}
	same(t, tab, m.want)
}

func (m *machine) replay(t *rapid.T, tab *Table, name string) {
	k, err := ParseName([]byte(name))
	if err != nil {
		t.Fatalf("%v", err)
	}
	var c Cursor
	if err := tab.Seek(&c, k); err != nil {
		t.Fatalf("Seek after a crash: %v", err)
	}
	if _, err := c.Delete(); err != nil {
		t.Fatalf("Delete after a crash: %v", err)
	}
	for col, v := range m.want[name] {
		if err := c.Set(col, v); err != nil {
			t.Fatalf("Set after a crash: %v", err)
		}
	}
}

func (m *machine) evict(t *rapid.T) {
	want := rapid.SampledFrom([]int64{1, 3000, 1 << 30}).Draw(t, "want")
	before, _ := m.tab.Pages()
	freed := m.tab.Evict(want)
	after, _ := m.tab.Pages()
	if (freed > 0) != (after < before) || m.tab.ResidentBytes() < m.tab.DirtyBytes() {
		t.Fatalf("Evict freed %d bytes, %d of %d pages stay, %d bytes, %d changed", freed, after, before, m.tab.ResidentBytes(), m.tab.DirtyBytes())
	}
}

func (m *machine) reopen(t *rapid.T) {
	for m.passing || len(m.store.pages) == 0 && m.tab.Rows() > 0 || m.tab.DirtyBytes() > 0 {
		m.collect(t)
	}
	m.collect(t)
	for m.passing {
		m.collect(t)
	}
	if m.tab.DirtyBytes() > 0 || len(m.tab.removed) > 0 {
		return // the last pass failed
	}
	for _, tr := range m.tab.trees {
		for _, id := range tr.chunks {
			if m.pool.chunk(id).marks() != 0 {
				return
			}
		}
	}
	m.tab.Close()
	m.tab = m.store.open(t, m.pool, m.tab.limits)
}

func (m *machine) batch(t *rapid.T) {
	n := rapid.IntRange(1, 150).Draw(t, "items")
	keys, cols, deltas := make([]Key, n), make([]Column, n), make([]int64, n)
	values, errs := make([]int64, n), make([]error, n)
	for i := range n {
		keys[i], cols[i], deltas[i] = m.key(t), columnGen.Draw(t, "column"), valueGen.Draw(t, "delta")
	}
	m.tab.AddBatch(keys, cols, deltas, values, errs)
	for i, k := range keys {
		want, err := counter.Sum(m.want[string(AppendName(nil, k))][cols[i]], deltas[i])
		if (err != nil) != (errs[i] != nil) || err == nil && values[i] != want {
			t.Fatalf("item %d of AddBatch = %d, %v; want %d, %v", i, values[i], errs[i], want, err)
		}
		if err == nil {
			m.want.set(k, cols[i], want)
		}
	}
	read := []Column{0, 3, cols[0]}
	got, present := make([]int64, 3*n), make([]bool, 3*n)
	if err := m.tab.GetBatch(keys, read, got, present); err != nil {
		t.Fatalf("GetBatch: %v", err)
	}
	for i, k := range keys {
		for j, col := range read {
			v, ok := m.want[string(AppendName(nil, k))][col]
			if got[3*i+j] != v || present[3*i+j] != ok {
				t.Fatalf("GetBatch of %s column %d = %d, %v; want %d, %v", k, col, got[3*i+j], present[3*i+j], v, ok)
			}
		}
	}
}

func TestMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := NewPool()
		defer pool.Close()
		m := &machine{pool: pool, store: newStore(), want: model{}, touched: map[string]bool{}}
		m.tab = m.store.open(t, pool, limits{
			pageBytes:  rapid.SampledFrom([]int{64, 200, pageBytesMax}).Draw(t, "page bytes"),
			chunkPages: rapid.SampledFrom([]int{2, 3, 5, chunkPages}).Draw(t, "chunk pages"),
		})
		m.other = New(pool, nil)
		t.Repeat(map[string]func(*rapid.T){
			"add": m.add, "set": m.set, "run": m.run, "clear": m.clear, "delete": m.delete,
			"collect": m.collect, "evict": m.evict, "reopen": m.reopen, "batch": m.batch,
			"other": func(t *rapid.T) {
				if _, err := m.other.Add(keyGen().Draw(t, "key"), 5, 1); err != nil && counter.KindOf(err) != counter.ErrInvalid {
					t.Fatalf("other: %v", err)
				}
			},
			"": func(t *rapid.T) { m.invariants(t); same(t, m.tab, m.want) },
		})
		m.tab.Close()
		if m.pool.Bytes() == 0 && len(m.want) > 0 {
			t.Fatalf("no memory was used")
		}
	})
}

// invariants checks the figures and the slots.
func (m *machine) invariants(t *rapid.T) {
	var rows, pages, resident int
	var residentBytes, dirtyBytes, chunkBytes int64
	for ti := range m.tab.trees {
		tr := &m.tab.trees[ti]
		for _, id := range tr.chunks {
			c := m.pool.chunk(id)
			chunkBytes += int64(slotBytes(m.pool.chunks[id]))
			for i := range c.entries() {
				rows += c.rows(i)
				pages++
				r := c.ref(i)
				if r == 0 {
					continue
				}
				if m.pool.owner(r)&ownerID != id {
					t.Fatalf("a slot's owner is wrong")
				}
				resident++
				residentBytes += int64(slotBytes(r))
				h := page(m.pool.slot(r)).header()
				if h&(pageDirty|pageFlushing) != 0 {
					dirtyBytes += int64(slotBytes(r))
				}
				if h&pageDirty != 0 && c.marks()&chunkHasDirty == 0 || h&pageFlushing != 0 && c.marks()&chunkHasFlushed == 0 {
					t.Fatalf("a page's mark is not on its chunk")
				}
				if h.rows() != c.rows(i) {
					t.Fatalf("a page has %d rows, its chunk says %d", h.rows(), c.rows(i))
				}
			}
		}
	}
	gotResident, gotPages := m.tab.Pages()
	if m.tab.Rows() != int64(rows) || gotPages != pages || gotResident != resident ||
		m.tab.ResidentBytes() != residentBytes || m.tab.DirtyBytes() != dirtyBytes || m.tab.chunkBytes != chunkBytes {
		t.Fatalf("figures: rows %d %d, pages %d %d, resident %d %d, bytes %d %d, dirty %d %d, chunks %d %d", m.tab.Rows(), rows, gotPages, pages,
			gotResident, resident, m.tab.ResidentBytes(), residentBytes, m.tab.DirtyBytes(), dirtyBytes, m.tab.chunkBytes, chunkBytes)
	}
}
