package table

import (
	"fmt"

	"github.com/tally-counter/tally/counter"
)

// Cursor stands on a row, or on the place where it would be. It is valid until
// its table, or another of the same pool, is used other than through it. The zero
// value is ready for Seek; reuse one to save its buffer.
type Cursor struct {
	t      *Table
	at     place
	paged  bool // there is a page at at
	row    int
	exists bool
	unary  int    // integers: the row's place among the unary bits of its page
	off    uint64 // integers: key - separator
	num    uint64
	text   []byte
}

func (c *Cursor) key() Key {
	if c.at.tree == 1 {
		return Key{Text: view(c.text), IsText: true}
	}
	return Key{Num: c.num}
}

// Seek puts c on the row k. It may read the row's page from the page store:
// errors are the Loader's, or wrap counter.ErrCorrupt when the page is damaged,
// counter.ErrInvalid when k is too long. After an error c stands nowhere and must
// not be used.
func (t *Table) Seek(c *Cursor, k Key) error {
	if err := k.check(); err != nil {
		return err
	}
	c.t, c.num = t, k.Num
	c.text = append(c.text[:0], k.Text...)
	return c.settle(k)
}

// settle finds the row again.
func (c *Cursor) settle(k Key) error {
	if !k.IsText {
		// The way of Add.
		if at, m, off, ok := c.t.reach(k.Num); ok {
			h := m.header()
			if h&pageHot == 0 {
				m.setHeader(h | pageHot)
			}
			c.at, c.paged = at, true
			c.row, c.unary, c.exists = m.findInt(h, off)
			c.off = off
			return nil
		}
	} else if at, m, ok := c.t.reachText(k.Text); ok {
		h := m.header()
		if h&pageHot == 0 {
			m.setHeader(h | pageHot)
		}
		var p textPlace
		m.seekText(h, k.Text, &p)
		c.at, c.paged, c.row, c.exists = at, true, p.row, p.ok
		return nil
	}
	c.row, c.exists = 0, false
	if c.at, c.paged = c.t.locate(k); !c.paged {
		return nil
	}
	if _, err := c.t.open(c.at); err != nil {
		return err
	}
	return c.settle(k)
}

func (c *Cursor) sep() Key { return c.t.chunkAt(c.at).sep(c.at.page) }

// mem is the cursor's page, which is in memory.
func (c *Cursor) mem() mem { return c.t.memAt(c.at) }

// page is mem with its length.
func (c *Cursor) page() page {
	return page(c.t.pool.slot(c.t.chunkAt(c.at).ref(c.at.page)))
}

// Exists tells whether the row exists: whether it has a cell.
func (c *Cursor) Exists() bool { return c.exists }

// Get reads a cell; absent gives 0, false.
func (c *Cursor) Get(col Column) (v int64, present bool) {
	if !c.exists {
		return 0, false
	}
	m := c.mem()
	return m.get(m.header(), c.row, col)
}

// Cells appends the present cells of the row in column order.
func (c *Cursor) Cells(dst []Cell) []Cell {
	if !c.exists {
		return dst
	}
	return c.page().cells(dst, c.row)
}

// Set makes the cell present with value v, and the row exist. c stays on the
// row. It fails, with nothing changed, only for a column above ColumnMax
// (counter.ErrInvalid).
func (c *Cursor) Set(col Column, v int64) error {
	if col > ColumnMax {
		return fmt.Errorf("table: column %d is above %d: %w", col, ColumnMax, counter.ErrInvalid)
	}
	if c.exists && c.setQuickly(col, v) {
		return nil
	}
	if c.paged && !c.exists && c.insertQuickly(col, v) {
		c.exists = true
		return nil
	}
	t, k := c.t, c.key()
	if !c.paged {
		t.firstPage(k, col, v)
		return c.settle(k)
	}
	r := newRows(k.IsText)
	defer r.free()
	r.unpack(c.page(), c.sep())
	inserted := -1
	if !c.exists {
		r.insert(c.row, k)
		inserted = c.row
	}
	r.column(col).put(c.row, v)
	t.replace(c.at, r, inserted)
	return c.settle(k)
}

// setQuickly writes v where the cell stands, or by a splice.
func (c *Cursor) setQuickly(col Column, v int64) bool {
	m := c.mem()
	h := m.header()
	i, d, at, ok := m.column(h, col)
	if !ok {
		return false
	}
	l := d.find(m, at, h.rows(), c.row)
	u, ok := l.holds(v, d.signed())
	if !ok {
		return c.t.widen(c.at, i, d, &l, v)
	}
	m.set(l.pos, l.width, u)
	c.t.touch(c.at, m)
	return true
}

// insertQuickly makes the row by a splice.
func (c *Cursor) insertQuickly(col Column, v int64) bool {
	if c.at.tree == 1 {
		m, k := c.mem(), view(c.text)
		var p textPlace
		m.seekText(m.header(), k, &p)
		return c.t.insertText(c.at, k, &p, col, v)
	}
	return c.t.insertNum(c.at, c.off, c.row, c.unary, col, v)
}

// Clear makes the cell absent and tells whether it was present. With its last
// cell the row goes.
func (c *Cursor) Clear(col Column) (was bool, err error) {
	if _, was = c.Get(col); !was {
		return false, nil
	}
	r := newRows(c.at.tree == 1)
	defer r.free()
	r.unpack(c.page(), c.sep())
	r.column(col).drop(c.row)
	if r.isEmpty(c.row) {
		r.remove(c.row)
	}
	c.t.replace(c.at, r, -1)
	return true, c.settle(c.key())
}

// Delete removes the row and tells whether it existed.
func (c *Cursor) Delete() (was bool, err error) {
	if !c.exists {
		return false, nil
	}
	r := newRows(c.at.tree == 1)
	defer r.free()
	r.unpack(c.page(), c.sep())
	r.remove(c.row)
	c.t.replace(c.at, r, -1)
	return true, c.settle(c.key())
}

// Scan calls fn for the rows from key from on, in key order, until fn returns
// false. The key's text and the cursor are valid during the call; fn must not
// change the table. Pages are read from the page store as they are reached:
// errors as of Seek, the rows before have been seen.
func (t *Table) Scan(from Key, fn func(k Key, c *Cursor) bool) error {
	if err := from.check(); err != nil {
		return err
	}
	for tree := treeOf(from); tree < len(t.trees); tree++ {
		if tree > treeOf(from) {
			from = Key{IsText: true}
		}
		if more, err := t.scanTree(from, fn); err != nil || !more {
			return err
		}
	}
	return nil
}

func (t *Table) scanTree(from Key, fn func(k Key, c *Cursor) bool) (more bool, err error) {
	at, ok := t.locate(from)
	if !ok {
		at.chunk, at.page = 0, 0
		ok = len(t.trees[at.tree].chunks) > 0
	}
	r := newRows(from.IsText)
	defer r.free()
	c := Cursor{t: t, paged: true, exists: true}
	for ; ok; at, ok = t.next(at) {
		b, err := t.open(at)
		if err != nil {
			return false, err
		}
		r.reset()
		r.unpackKeys(b, t.chunkAt(at).sep(at.page))
		c.at, c.row = at, 0
		for c.row = range r.n {
			k := r.key(c.row)
			if k.Compare(from) < 0 {
				continue
			}
			c.num, c.text = k.Num, append(c.text[:0], k.Text...)
			if !fn(k, &c) {
				return false, nil
			}
		}
	}
	return true, nil
}
