package table

import (
	"fmt"

	"github.com/tally-counter/tally/counter"
)

// The way of an add or a get of an integer key to its cell: about 85 ns of work
// and two waits for memory, the chunk and the page, when neither is in the
// processor's caches. What is here works on bare memory (mem), parses the page's
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
	return at, p.mem(r), n - sep, r != 0
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
	} else if at, m, off, ok := t.reach(k.Num); ok {
		if v, done, err := t.addAt(at, m, off, col, delta); done {
			return v, err
		}
	}
	return t.addSlowly(k, col, delta)
}

// addText is Add for a text key whose page is in memory; done is false when it is
// not, or when the page must be unpacked.
func (t *Table) addText(k Key, col Column, delta int64) (v int64, done bool, err error) {
	if err := k.check(); err != nil {
		return 0, true, err
	}
	at, ok := t.locate(k)
	if !ok {
		return 0, false, nil
	}
	r := t.chunkAt(at).ref(at.page)
	if r == 0 {
		return 0, false, nil
	}
	m := t.pool.mem(r)
	h := m.header()
	p := m.placeText(h, k.Text)
	if !p.ok {
		return delta, t.insertText(at, p, k.Text, col, delta), nil
	}
	return t.addToRow(at, m, h, p.row, col, delta)
}

// addAt adds to the row at offset off of the page m, in place or by a splice;
// done is false when that is not possible.
func (t *Table) addAt(at place, m mem, off uint64, col Column, delta int64) (v int64, done bool, err error) {
	h := m.header()
	row, unary, ok := m.findInt(h, off)
	if !ok {
		return delta, t.insertNum(at, off, row, unary, col, delta), nil
	}
	return t.addToRow(at, m, h, row, col, delta)
}

// addToRow is addAt for a row that exists.
func (t *Table) addToRow(at place, m mem, h header, row int, col Column, delta int64) (v int64, done bool, err error) {
	i, d, p, ok := m.column(h, col)
	if !ok {
		return 0, false, nil
	}
	if d&(descSparse|descSigned) == 0 {
		// As a rule the value stands on the first level, as it is, and stays there.
		// The sum of a lane and delta may wrap only to what is no lane's value.
		log := uint(d.form())
		all := uint64(1)<<(1<<log&63) - 1
		pos := p + row<<log
		word := m.load(pos >> 3)
		old := word >> uint(pos&7) & all
		if sum := old + uint64(delta); old != all && sum-1 < all-1 {
			m.store(pos>>3, word+uint64(delta)<<uint(pos&7))
			if h&(pageDirty|pageHot) != pageDirty|pageHot {
				t.touch(at, m)
			}
			return int64(sum), true, nil
		}
	}
	return t.addToLane(at, m, i, d, d.find(m, p, h.rows(), row), delta)
}

// addToLane is addToRow for every kind of column and level.
func (t *Table) addToLane(at place, m mem, i int, d desc, l lane, delta int64) (v int64, done bool, err error) {
	signed := d.signed()
	if l.present() {
		v = l.value(signed)
	}
	v, err = counter.Sum(v, delta)
	if err != nil {
		return 0, true, err
	}
	u, ok := l.holds(v, signed)
	if !ok {
		return v, t.widen(at, i, d, l, v), nil
	}
	m.set(l.pos, l.width, u)
	t.touch(at, m)
	return v, true, nil
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
