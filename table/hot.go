package table

import (
	"fmt"

	"github.com/tally-counter/tally/counter"
)

// The way of an add or a get of an integer key to its cell: about 900 instructions
// (callgrind, 20,000 rows of one counter, escapes and splices included) and two
// waits for memory, the chunk and the page, when neither is in the processor's
// caches. What is here works on bare memory (mem), parses the page's
// header once, and leaves whatever is rare to the plain code.

// reach finds the page that integer n belongs to, and n's offset in it; it is
// false when there is none in memory.
func (t *Table) reach(n uint64) (at place, m mem, off uint64, ok bool) {
	tr := &t.trees[0]
	at.chunk = findFirst(tr.firsts, n)
	if at.chunk < 0 {
		return at, m, 0, false
	}
	p := t.pool
	c := p.mem(p.chunks[tr.chunks[at.chunk]])
	page, sep := c.findNum(n)
	at.page = page
	r := c.refNum(page)
	m, off = p.mem(r), n-sep
	if r != 0 && t.keysShare > 0 {
		p.touchSink += t.touchAhead(c, page, m, r, off)
	}
	return at, m, off, r != 0
}

// touchAhead reads, of the page m, about where the low part and the first column's
// lane of the key at offset off must be if the page's keys are evenly spaced, so
// that these lines come at the same time as the header, and not after it.
func (t *Table) touchAhead(c mem, page int, m mem, r ref, off uint64) byte {
	width := c.gap(page)
	if off >= width {
		return 0
	}
	size := slotBytes(r)
	part := int(off/(width>>8+1)) & 0xff
	keys := size * int(t.keysShare) >> 8
	low := keys * part >> 8
	lane := keys + (size-keys)*part>>8
	return m.byte(low) + m.byte(lane)
}

// Add adds delta to a cell, which counts as 0 when absent and is present
// afterwards, and returns its new value. Errors, with nothing changed:
// counter.ErrOverflow, and those of Seek and Set. Adding to a row in memory
// allocates nothing.
func (t *Table) Add(k Key, col Column, delta int64) (int64, error) {
	if col > ColumnMax {
		return 0, fmt.Errorf("table: column %d is above %d: %w", col, ColumnMax, counter.ErrInvalid)
	}
	if k.IsText {
		if v, done, err := t.addText(k, col, delta); done {
			return v, err
		}
		return t.addSlowly(k, col, delta)
	}
	at, m, off, ok := t.reach(k.Num)
	if !ok {
		return t.addSlowly(k, col, delta)
	}
	h := m.header()
	row, unary, ok := m.findInt(h, off)
	if !ok {
		if t.insertNum(at, off, row, unary, col, delta) {
			return delta, nil
		}
		return t.addSlowly(k, col, delta)
	}
	v, ok := m.addQuickly(h, row, col, delta)
	if !ok {
		return t.addToRow(k, at, row, col, delta)
	}
	if h&(pageDirty|pageHot) != pageDirty|pageHot {
		t.touch(at, m)
	}
	return v, nil
}

// addQuickly adds to a value that stands, as most do, on the first level of a
// dense unsigned column, and still does afterwards. It is false, with nothing
// changed, for all others. The caller marks the page.
func (m mem) addQuickly(h header, row int, col Column, delta int64) (v int64, ok bool) {
	_, d, at, ok := m.column(h, col)
	if !ok || d&(descSparse|descSigned) != 0 {
		return 0, false
	}
	log := uint(d.form()) // of the width
	all := uint64(1)<<(1<<log&63) - 1
	pos := at + row<<log
	word := m.load(pos >> 3)
	// The sum of a lane and delta may wrap only to what is no lane's value.
	old := word >> uint(pos&7) & all
	sum := old + uint64(delta)
	if old == all || sum-1 >= all-1 {
		return 0, false
	}
	m.store(pos>>3, word+uint64(delta)<<uint(pos&7))
	return int64(sum), true
}

// addToRow is Add for a row that exists and every kind of column and level.
func (t *Table) addToRow(k Key, at place, row int, col Column, delta int64) (v int64, err error) {
	m := t.memAt(at)
	h := m.header()
	i, d, p, ok := m.column(h, col)
	if !ok {
		return t.addSlowly(k, col, delta)
	}
	l := d.find(m, p, h.rows(), row)
	signed := d.signed()
	if l.present() {
		v = l.value(signed)
	}
	v, err = counter.Sum(v, delta)
	if err != nil {
		return 0, err
	}
	if u, ok := l.holds(v, signed); ok {
		m.set(l.pos, l.width, u)
		t.touch(at, m)
	} else if !t.widen(at, i, d, &l, v) {
		return t.addSlowly(k, col, delta)
	}
	return v, nil
}

func (t *Table) addSlowly(k Key, col Column, delta int64) (int64, error) {
	var c Cursor
	if err := t.Seek(&c, k); err != nil {
		return 0, err
	}
	v, _ := c.Get(col)
	v, err := counter.Sum(v, delta)
	if err != nil {
		return 0, err
	}
	return v, c.Set(col, v)
}
