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
	row, unary, ok := b.findInt(off)
	if !ok {
		return delta, t.insertRow(at, b, off, row, unary, col, delta), nil
	}
	h := b.header()
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

// AddBatch is Add for each i; the slices have one length. Values and errs are
// filled. Items with equal keys are applied in order.
func (t *Table) AddBatch(keys []Key, cols []Column, deltas []int64, values []int64, errs []error) {
	for i, k := range keys {
		values[i], errs[i] = t.Add(k, cols[i], deltas[i])
	}
}

// GetBatch reads the cells cols of each key: those of keys[i] are put at
// values[i*len(cols)] and present[i*len(cols)] on; absent gives 0, false. It
// stops at the first error, which is one of Seek's.
func (t *Table) GetBatch(keys []Key, cols []Column, values []int64, present []bool) error {
	var c Cursor
	n := len(cols)
	for i, k := range keys {
		if err := t.Seek(&c, k); err != nil {
			return err
		}
		for j, col := range cols {
			values[i*n+j], present[i*n+j] = c.Get(col)
		}
	}
	return nil
}
