package table

import "encoding/binary"

// A page is one bit string; docs/format/page.md draws it.
//
//	header      64 bits
//	descriptors 64 bits for each column that occurs, ascending
//	keys        integers: unary high parts, then low parts (Elias-Fano of key - separator)
//	            texts: a block of bytes, front-coded
//	columns     in the order of their descriptors
//
// The header, from its lowest bit: 8 rows | 13 columns | 6 low bits L, 10 buckets
// (integers) or 16 bytes of the key block (texts) | 20 length of the page in bits
// | dirty | flushing | hot | text | 3 zero. The three marks are 0 in a stored page.
type header uint64

const (
	headerBits  = 64
	descBits    = 64
	rowsMax     = 255
	columnsMax  = int(ColumnMax) + 1
	bucketsMax  = 1023
	pageBitsMax = 1<<20 - 1
	keyBytesMax = 1<<16 - 1

	pageDirty    = 1 << 57 // changed since it was last collected
	pageFlushing = 1 << 58 // collected, not yet known to be in the page store
	pageHot      = 1 << 59 // used since the clock last passed
	pageMarks    = pageDirty | pageFlushing | pageHot
	pageText     = 1 << 60
	pageZero     = 7 << 61
)

func newHeader(rows, cols, keys, length int, text bool) header {
	h := header(rows) | header(cols)<<8 | header(keys)<<21 | header(length)<<37
	if text {
		h |= pageText
	}
	return h
}

func (h header) rows() int     { return int(h & 0xff) }
func (h header) cols() int     { return int(h >> 8 & 0x1fff) }
func (h header) lowBits() int  { return int(h >> 21 & 0x3f) }
func (h header) buckets() int  { return int(h >> 27 & 0x3ff) }
func (h header) keyBytes() int { return int(h >> 21 & 0xffff) }
func (h header) length() int   { return int(h >> 37 & 0xfffff) }
func (h header) bytes() int    { return (h.length() + 7) >> 3 }
func (h header) text() bool    { return h&pageText != 0 }

// keysAt is the first byte of the keys.
func (h header) keysAt() int { return (headerBits + descBits*h.cols()) / 8 }

// columnsAt is the first bit of the columns.
func (h header) columnsAt() int {
	if h.text() {
		return 8 * (h.keysAt() + h.keyBytes())
	}
	return 8*h.keysAt() + h.rows() + h.buckets() + h.rows()*h.lowBits()
}

// page is the memory of a page that is known to be well-formed, followed by
// padBytes or more.
type page []byte

func (b page) header() header        { return header(le64(b, 0)) }
func (b page) setHeader(h header)    { binary.LittleEndian.PutUint64(b, uint64(h)) }
func (b page) desc(i int) desc       { return desc(le64(b, 8+8*i)) }
func (b page) setDesc(i int, d desc) { binary.LittleEndian.PutUint64(b[8+8*i:], uint64(d)) }

// column returns the number of the column's descriptor, the descriptor, and the
// first bit of the column; when it does not occur, where it would stand.
func (m mem) column(h header, col Column) (i int, d desc, at int, ok bool) {
	at = h.columnsAt()
	rows, n := h.rows(), h.cols()
	for i = range n {
		d = m.desc(i)
		if c := d.col(); c >= col {
			return i, d, at, c == col
		}
		at += d.bits(rows)
	}
	return n, 0, at, false
}

func (m mem) header() header     { return header(m.load(0)) }
func (m mem) setHeader(h header) { m.store(0, uint64(h)) }
func (m mem) desc(i int) desc    { return desc(m.load(8 + 8*i)) }

func (m mem) setDesc(i int, d desc) { m.store(8+8*i, uint64(d)) }

// get reads a cell.
func (m mem) get(h header, row int, col Column) (v int64, present bool) {
	_, d, at, ok := m.column(h, col)
	if !ok {
		return 0, false
	}
	if v, ok := m.quickGet(d, at, row); ok {
		return v, v != 0
	}
	l := d.find(m, at, h.rows(), row)
	if !l.present() {
		return 0, false
	}
	return l.value(d.signed()), true
}

// quickGet reads a cell that is absent or stands on the first level of a dense
// unsigned column, as most do: 0 is absent.
func (m mem) quickGet(d desc, at, row int) (v int64, ok bool) {
	if d&(descSparse|descSigned) != 0 {
		return 0, false
	}
	w := uint(d.form()) // log2 of the width
	all := uint64(1)<<(1<<w&63) - 1
	sym := m.bits(at+row<<w) & all
	return int64(sym), sym != all
}

// cells appends the cells of a row in column order.
func (b page) cells(dst []Cell, row int) []Cell {
	h := b.header()
	rows, at := h.rows(), h.columnsAt()
	for i := range h.cols() {
		d := b.desc(i)
		if l := d.find(memOf(b), at, rows, row); l.present() {
			dst = append(dst, Cell{d.col(), l.value(d.signed())})
		}
		at += d.bits(rows)
	}
	return dst
}

// find returns the row of key k, or the row before which it would stand.
func (b page) find(k Key, sep Key) (row int, ok bool) {
	if k.IsText {
		var p textPlace
		memOf(b).seekText(b.header(), k.Text, &p)
		return p.row, p.ok
	}
	row, _, ok = memOf(b).findInt(b.header(), k.Num-sep.Num)
	return row, ok
}
