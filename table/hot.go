package table

import (
	"fmt"

	"github.com/tally-counter/tally/counter"
)

// Add adds delta to a cell, which counts as 0 when absent and is present
// afterwards, and returns its new value. Errors, with nothing changed:
// counter.ErrOverflow, and those of Seek and Set. Adding to a row in memory
// allocates nothing.
func (t *Table) Add(k Key, col Column, delta int64) (int64, error) {
	if col > ColumnMax {
		return 0, fmt.Errorf("table: column %d is above %d: %w", col, ColumnMax, counter.ErrInvalid)
	}
	if !k.IsText {
		if at, ok := t.locate(k); ok {
			c := t.chunkAt(at)
			if r := c.ref(at.page); r != 0 {
				if v, done, err := t.addAt(at, page(t.pool.slot(r)), k.Num-c.sep(at.page).Num, col, delta); done {
					return v, err
				}
			}
		}
	}
	return t.addSlowly(k, col, delta)
}

// addAt adds to the row at offset off of the page b, in place or by a splice;
// done is false when that is not possible.
func (t *Table) addAt(at place, b page, off uint64, col Column, delta int64) (v int64, done bool, err error) {
	h := b.header()
	row, unary, ok := b.findInt(h, off)
	if !ok {
		return delta, t.insertRow(at, b, off, row, unary, col, delta), nil
	}
	return t.addToRow(at, b, h, row, col, delta)
}

// addToRow is addAt for a row that exists.
func (t *Table) addToRow(at place, b page, h header, row int, col Column, delta int64) (v int64, done bool, err error) {
	i, d, p, ok := b.column(h, col)
	if !ok {
		return 0, false, nil
	}
	l := d.find(b, p, h.rows(), row)
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
		return v, t.widen(at, b, i, d, l, v), nil
	}
	set(b, l.pos, l.width, u)
	if h&(pageDirty|pageHot) != pageDirty|pageHot {
		t.touch(at, b)
	}
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
