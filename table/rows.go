package table

import (
	"math/bits"
	"sync"
)

// rows is a page unpacked: what structural changes work on. It holds one row
// more than a page, so that a full page can take one in before it is split.
type rows struct {
	text  bool
	n     int
	nums  []uint64
	bytes []byte // texts, end to end, in no order
	spans []span // where each text is
	cols  []*cells
	spare []*cells
	tally tally
}

type span struct{ from, to int }

// cells is one column of rows.
type cells struct {
	col     Column
	present [4]uint64
	value   [rowsMax + 1]int64
}

func (c *cells) has(i int) bool { return c.present[i>>6]>>(i&63)&1 == 1 }

func (c *cells) put(i int, v int64) {
	c.present[i>>6] |= 1 << (i & 63)
	c.value[i] = v
}

func (c *cells) drop(i int) { c.present[i>>6] &^= 1 << (i & 63) }

func (c *cells) count() (n int) {
	for _, w := range c.present {
		n += bits.OnesCount64(w)
	}
	return n
}

// insert makes room for a row before row i.
func (c *cells) insert(i, n int) {
	copy(c.value[i+1:n+1], c.value[i:n])
	at := i >> 6
	low := c.present[at] & mask(i&63)
	high := c.present[at] &^ mask(i&63)
	for w := 3; w > at; w-- {
		c.present[w] = c.present[w]<<1 | c.present[w-1]>>63
	}
	c.present[at] = low | high<<1
}

func (c *cells) remove(i, n int) {
	copy(c.value[i:n-1], c.value[i+1:n])
	at := i >> 6
	low := c.present[at] & mask(i&63)
	high := c.present[at] & ^mask(i&63) & ^(uint64(1) << (i & 63))
	c.present[at] = low | high>>1
	for w := at + 1; w < 4; w++ {
		c.present[w-1] |= c.present[w] & 1 << 63
		c.present[w] >>= 1
	}
}

var rowsPool = sync.Pool{New: func() any { return new(rows) }}

// newRows returns an empty rows; give it back with free.
func newRows(text bool) *rows {
	r := rowsPool.Get().(*rows)
	r.text = text
	r.reset()
	return r
}

func (r *rows) free() { rowsPool.Put(r) }

// reset makes r empty.
func (r *rows) reset() {
	r.n = 0
	r.nums, r.bytes, r.spans = r.nums[:0], r.bytes[:0], r.spans[:0]
	r.spare = append(r.spare, r.cols...)
	r.cols = r.cols[:0]
}

func (r *rows) key(i int) Key {
	if r.text {
		return Key{Text: view(r.textAt(i)), IsText: true}
	}
	return Key{Num: r.nums[i]}
}

func (r *rows) textAt(i int) []byte { return r.bytes[r.spans[i].from:r.spans[i].to] }

func (r *rows) appendKey(k Key) {
	if r.text {
		at := len(r.bytes)
		r.bytes = append(r.bytes, k.Text...)
		r.spans = append(r.spans, span{at, len(r.bytes)})
	} else {
		r.nums = append(r.nums, k.Num)
	}
	r.n++
}

// column returns the cells of a column, which it adds when there are none.
func (r *rows) column(col Column) *cells {
	i := 0
	for ; i < len(r.cols); i++ {
		if c := r.cols[i]; c.col == col {
			return c
		} else if c.col > col {
			break
		}
	}
	return r.addColumn(i, col)
}

func (r *rows) addColumn(i int, col Column) *cells {
	var c *cells
	if n := len(r.spare); n > 0 {
		c, r.spare = r.spare[n-1], r.spare[:n-1]
		c.present = [4]uint64{}
	} else {
		c = new(cells)
	}
	c.col = col
	r.cols = append(r.cols, nil)
	copy(r.cols[i+1:], r.cols[i:])
	r.cols[i] = c
	return c
}

// insert adds a row without cells before row i.
func (r *rows) insert(i int, k Key) {
	r.appendKey(k)
	if r.text {
		s := r.spans[r.n-1]
		copy(r.spans[i+1:], r.spans[i:r.n-1])
		r.spans[i] = s
	} else {
		copy(r.nums[i+1:], r.nums[i:r.n-1])
		r.nums[i] = k.Num
	}
	for _, c := range r.cols {
		c.insert(i, r.n-1)
	}
}

func (r *rows) remove(i int) {
	if r.text {
		r.spans = append(r.spans[:i], r.spans[i+1:]...)
	} else {
		r.nums = append(r.nums[:i], r.nums[i+1:]...)
	}
	for _, c := range r.cols {
		c.remove(i, r.n)
	}
	r.n--
}

// isEmpty tells whether row i has no cell.
func (r *rows) isEmpty(i int) bool {
	for _, c := range r.cols {
		if c.has(i) {
			return false
		}
	}
	return true
}

// unpack appends the rows of a page; there must be room for them.
func (r *rows) unpack(b page, sep Key) {
	h := b.header()
	base, n := r.n, h.rows()
	r.unpackKeys(b, sep)
	at := h.columnsAt()
	for i := range h.cols() {
		d := b.desc(i)
		r.column(d.col()).unpack(memOf(b), d, at, n, base)
		at += d.bits(n)
	}
}

// unpackKeys appends the keys of a page, without their cells.
func (r *rows) unpackKeys(b page, sep Key) {
	h := b.header()
	n := h.rows()
	r.n += n
	if !r.text {
		r.nums = b.appendInts(r.nums, sep.Num)
		return
	}
	r.unpackTexts(memOf(b), h)
}

// unpack reads the column d at bit p of m; row 0 of it becomes row base.
func (c *cells) unpack(m mem, d desc, p, n, base int) {
	// next[k] is the lane on level k that the next escape from above stands in.
	var next [levelsMax]int
	w := &levelBits[d.form()]
	lanes, list := d.lanes(n), p
	if d.sparse() {
		p += lanes * rowBits
	}
	next[0] = p
	for k, count := 1, lanes; k < levelsMax; k++ {
		next[k] = next[k-1] + count*w[k-1]
		count = d.count(k)
		if w[k] == 64 {
			break
		}
	}
	for i := range lanes {
		row := i
		if d.sparse() {
			row = int(m.bits(list+i*rowBits) & mask(rowBits))
		}
		for k := range levelsMax {
			width := w[k]
			sym := m.word(next[k]) & mask(width)
			next[k] += width
			if width == 64 {
				c.put(base+row, int64(sym))
				break
			}
			if sym != mask(width) {
				if sym != 0 {
					c.put(base+row, value(sym, d.signed()))
				}
				break
			}
		}
	}
}
