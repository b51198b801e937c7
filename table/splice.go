package table

import "encoding/binary"

// Inserting a row and moving a value to a wider level are splices: the page is
// copied once, with some bits more in some places. It is not unpacked. What a
// splice cannot do, it leaves to replace: a new column, a text key, a page that
// would be too large or too ill-shaped.

// splice is a list of insertions into a page, ascending.
type splice struct {
	n     int
	grown int // bits inserted
	edits [spliceMax]insertion
}

type insertion struct {
	at, width int // before bit at of the old page, width <= 64
	bits      uint64
}

const spliceMax = 64

func (s *splice) insert(at, width int, bits uint64) {
	if s.n < spliceMax {
		s.edits[s.n] = insertion{at, width, bits}
	}
	s.n++
	s.grown += width
}

// apply copies the first length bits of src to dst with the insertions.
func (s *splice) apply(dst, src page, length int) {
	d, p := 0, 0
	for _, e := range s.edits[:s.n] {
		copyBits(dst, d, src, p, e.at-p)
		d, p = d+e.at-p, e.at
		set(dst, d, e.width, e.bits)
		d += e.width
	}
	copyBits(dst, d, src, p, length-p)
}

// value inserts a lane for v before lane i of a level, and the lanes on the
// levels behind it that v needs. The level has n lanes from bit p on. It returns
// the descriptor with the lanes of the levels behind counted.
func (s *splice) value(b page, d desc, level, p, n, i int, v int64) desc {
	w := &levelBits[d.form()]
	u, ok := symbol(v, d.signed())
	for k := level; ; k++ {
		width := w[k&7]
		if width == 64 {
			s.insert(p+i*width, width, uint64(v))
			return d
		}
		if ok && u < mask(width) {
			s.insert(p+i*width, width, u)
			return d
		}
		s.insert(p+i*width, width, mask(width))
		i, p = memOf(b).countEscapes(p, width, i), p+n*width
		n = d.count(k + 1)
		d += 1 << (countShift + 8*uint(k))
	}
}

// list inserts an entry for row into a sparse column that begins at bit p.
func (s *splice) list(b page, d desc, p, row int, v int64) desc {
	n := d.lanes(0)
	i, _ := memOf(b).listed(p, n, row)
	s.insert(p+i*rowBits, rowBits, uint64(row))
	return s.value(b, d, 0, p+n*rowBits, n, i, v) + 1<<laneShift
}

// widen gives the value at l, lane of column number i of the page, the value v,
// which does not fit there. It reports false when that takes a replace.
func (t *Table) widen(at place, i int, d desc, l lane, v int64) bool {
	b := page(t.pool.slot(t.chunkAt(at).ref(at.page)))
	h := b.header()
	s := &t.pool.splice
	s.n, s.grown = 0, 0
	var fresh desc
	if l.missing {
		fresh = s.list(b, d, l.pos, l.row, v)
	} else {
		rank := memOf(b).countEscapes(l.level, l.width, l.row)
		fresh = s.value(b, d, l.depth+1, l.level+l.lanes*l.width, d.count(l.depth+1), rank, v) + 1<<(countShift+8*uint(l.depth))
	}
	// Crossing the limit repacks the page once; full pages let values grow.
	if !t.fits(h, s, t.limits.pageBytes) && (h.bytes() <= t.limits.pageBytes || !t.fits(h, s, t.limits.pageBytes*3/2)) {
		return false
	}
	if !l.missing {
		set(b, l.pos, l.width, mask(l.width))
	}
	out := t.spliced(b, h, s)
	out.setDesc(i, fresh)
	t.overwrite(at, out[:out.header().bytes()])
	return true
}

// insertRow inserts a row with one cell, for the key at offset off, before row
// row; unary is its place as findInt gives it. It reports false when that takes a
// replace.
func (t *Table) insertRow(at place, off uint64, row, unary int, col Column, v int64) bool {
	b := page(t.pool.slot(t.chunkAt(at).ref(at.page)))
	h := b.header()
	i, _, _, ok := memOf(b).column(h, col)
	if !ok || h.rows() == rowsMax || h.cols() > spliceMax/4 {
		return false
	}
	s := &t.pool.splice
	s.n, s.grown = 0, 0
	n, low, buckets := h.rows(), h.lowBits(), h.buckets()
	keys := 8 * h.keysAt()
	if more := off >> uint(low); more >= uint64(buckets) {
		more -= uint64(buckets)
		if more > 60 || buckets+int(more)+1 > min(bucketsMax, 4*n+16) {
			return false
		}
		s.insert(keys+n+buckets, int(more)+2, 1<<more)
		buckets += int(more) + 1
	} else {
		if buckets < n/2 && n > 16 {
			return false // too many keys a bucket: repack with fewer low bits
		}
		s.insert(keys+unary, 1, 1)
	}
	s.insert(keys+n+h.buckets()+row*low, low, off&mask(low))
	p := h.columnsAt()
	var fresh desc
	for k := range h.cols() {
		d := b.desc(k)
		switch {
		case k == i && d.sparse():
			fresh = s.list(b, d, p, row, v)
		case k == i:
			fresh = s.value(b, d, 0, p, n, row, v)
		case !d.sparse():
			s.insert(p+row*levelBits[d.form()][0], levelBits[d.form()][0], 0)
		}
		p += d.bits(n)
	}
	if !t.fits(h, s, t.limits.pageBytes) {
		return false
	}
	out := t.spliced(b, h, s)
	out.setDesc(i, fresh)
	g := newHeader(n+1, h.cols(), low|buckets<<6, h.length()+s.grown, false)
	out.setHeader(g)
	out.shiftLists(g, i, row)
	t.setRows(at, n+1)
	t.overwrite(at, out[:g.bytes()])
	return true
}

// fits tells whether the page with the header h and s applied has at most limit
// bytes.
func (t *Table) fits(h header, s *splice, limit int) bool {
	return s.n <= spliceMax && (h.length()+s.grown+7)>>3 <= limit
}

// spliced returns the page b with s applied and its length mended, in scratch
// memory.
func (t *Table) spliced(b page, h header, s *splice) page {
	length := h.length() + s.grown
	n := (length + 7) >> 3
	t.pool.page = sized(t.pool.page, n+2*padBytes)[:n+padBytes]
	out := page(t.pool.page)
	s.apply(out, b, h.length())
	set(out, length, 8*n-length, 0)
	out.setHeader(h&^(0xfffff<<37) | header(length)<<37)
	return out
}

// shiftLists counts a row that was inserted in the lists of sparse columns;
// column number own has listed it already.
func (b page) shiftLists(h header, own, row int) {
	p := h.columnsAt()
	for k := range h.cols() {
		d := b.desc(k)
		if d.sparse() {
			seen := k != own
			for i := range d.lanes(0) {
				r := int(get(b, p+i*rowBits, rowBits))
				if r >= row && seen {
					set(b, p+i*rowBits, rowBits, uint64(r+1))
				}
				seen = seen || r == row
			}
		}
		p += d.bits(h.rows())
	}
}

// copyBits copies n bits from src at s to dst at d; the two do not overlap. The
// bits of dst behind the last one are undefined.
func copyBits(dst []byte, d int, src []byte, s, n int) {
	if n <= 0 {
		return
	}
	if head := -d & 7; head > 0 {
		head = min(head, n)
		set(dst, d, head, get(src, s, head))
		d, s, n = d+head, s+head, n-head
	}
	i, j := d>>3, s>>3
	shift := uint(s & 7)
	if shift == 0 {
		copy(dst[i:i+(n+7)>>3], src[j:])
		return
	}
	for low := le64(src, j); n > 0; n -= 64 {
		high := le64(src, j+8)
		binary.LittleEndian.PutUint64(dst[i:], low>>shift|high<<(64-shift))
		low = high
		i, j = i+8, j+8
	}
}
