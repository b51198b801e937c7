package table

// Inserting a row and moving a value to a wider level are splices: the page keeps
// its bits, with some more in some places. It is not unpacked: in its slot, the
// bits behind each place move up; when the slot is too small they are copied to
// another. What a splice cannot do, it leaves to replace: a new column, a page that
// would be too large or too ill-shaped.

// splice is a list of insertions into a page, ascending.
type splice struct {
	n     int
	grown int // bits inserted
	edits [spliceMax]insertion
}

// insertion puts width bits before bit at of the old page; more than 64 are a gap
// that the caller fills.
type insertion struct {
	at, width int
	bits      uint64
}

const spliceMax = 64

func (s *splice) reset() *splice {
	s.n, s.grown = 0, 0
	return s
}

func (s *splice) insert(at, width int, bits uint64) {
	if s.n < spliceMax {
		s.edits[s.n] = insertion{at, width, bits}
	}
	s.n++
	s.grown += width
}

// copyTo writes the first length bits of src, with the insertions, to dst.
func (s *splice) copyTo(dst, src mem, length int) {
	d, p := 0, 0
	for i := range s.n {
		e := &s.edits[i]
		copyBits(dst, d, src, p, e.at-p)
		d, p = d+e.at-p, e.at
		if e.width <= 64 {
			dst.set(d, e.width, e.bits)
		}
		d += e.width
	}
	copyBits(dst, d, src, p, length-p)
}

// within makes the insertions in m itself, a page of length bits.
func (s *splice) within(m mem, length int) {
	by := s.grown
	for i := s.n - 1; i >= 0; i-- {
		e := &s.edits[i]
		m.moveUp(e.at, length-e.at, by)
		length, by = e.at, by-e.width
		if e.width <= 64 {
			m.set(e.at+by, e.width, e.bits)
		}
	}
}

// value inserts a lane for v before lane i of a level, and the lanes on the
// levels behind it that v needs. The level has n lanes from bit p on. It returns
// the descriptor with the lanes of the levels behind counted.
func (s *splice) value(m mem, d desc, level, p, n, i int, v int64) desc {
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
		i, p = m.countEscapes(p, width, i), p+n*width
		n = d.count(k + 1)
		d += 1 << (countShift + 8*uint(k))
	}
}

// list inserts an entry for row into a sparse column that begins at bit p.
func (s *splice) list(m mem, d desc, p, row int, v int64) desc {
	n := d.lanes(0)
	i, _ := m.listed(p, n, row)
	s.insert(p+i*rowBits, rowBits, uint64(row))
	return s.value(m, d, 0, p+n*rowBits, n, i, v) + 1<<laneShift
}

// widen gives the value at l, lane of column number i of the page, the value v,
// which does not fit there. It reports false when that takes a replace.
func (t *Table) widen(at place, i int, d desc, l *lane, v int64) bool {
	m := t.memAt(at)
	h := m.header()
	s := t.pool.splice.reset()
	var fresh desc
	if l.missing {
		fresh = s.list(m, d, l.pos, l.row, v)
	} else {
		rank := m.countEscapes(l.level, l.width, l.row)
		fresh = s.value(m, d, l.depth+1, l.level+l.lanes*l.width, d.count(l.depth+1), rank, v) + 1<<(countShift+8*uint(l.depth))
	}
	if !fits(h, s, t.growLimit(h)) {
		return false
	}
	if !l.missing {
		m.set(l.pos, l.width, mask(l.width))
	}
	t.apply(at, h, s, 0).setDesc(i, fresh)
	t.assertAt(at)
	return true
}

// insertNum inserts a row with one cell, for the key at offset off, before row
// row; unary is its place as findInt gives it. It reports false when that takes a
// replace.
func (t *Table) insertNum(at place, off uint64, row, unary int, col Column, v int64) bool {
	h := t.memAt(at).header()
	s := t.pool.splice.reset()
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
	s.insert(h.lowsAt()+row*low, low, off&mask(low))
	if _, ok := t.insertRow(at, h, s, row, low|buckets<<6, col, v); !ok {
		return false
	}
	t.assertAt(at)
	return true
}

// insertRow inserts the cells of a new row before row row, absent but for one; s
// inserts its key already, keys is the header's field of that name.
func (t *Table) insertRow(at place, h header, s *splice, row, keys int, col Column, v int64) (m mem, ok bool) {
	m = t.memAt(at)
	i, _, _, ok := m.column(h, col)
	n := h.rows()
	if !ok || n == rowsMax || h.cols() > spliceMax/4 {
		return m, false
	}
	p := h.columnsAt()
	var fresh desc
	for k := range h.cols() {
		d := m.desc(k)
		switch {
		case k == i && d.sparse():
			fresh = s.list(m, d, p, row, v)
		case k == i:
			fresh = s.value(m, d, 0, p, n, row, v)
		case !d.sparse():
			s.insert(p+row<<uint(d.form()), 1<<uint(d.form()), 0)
		}
		p += d.bits(n)
	}
	if !fits(h, s, t.limitFor(h)) {
		return m, false
	}
	t.setRows(at, n+1)
	// Where a row comes others will: a step more than it needs halves the moves of
	// pages that random rows come to, for 0.07 bytes a row. A text is longer than a
	// step as a rule, so that it would be wasted.
	room := slotStep
	if h.text() {
		room = 0
	}
	m = t.apply(at, h, s, room)
	m.setDesc(i, fresh)
	marks := m.header() & pageMarks
	g := newHeader(n+1, h.cols(), keys, h.length()+s.grown, h.text())
	m.setHeader(g | marks)
	m.shiftLists(g, i, row)
	return m, true
}

// fits tells whether the page with the header h and s applied has at most limit
// bytes.
func fits(h header, s *splice, limit int) bool {
	return s.n <= spliceMax && (h.length()+s.grown+7)>>3 <= limit
}

// apply makes the insertions in the page at, whose header is h, and mends its
// length and marks. The page may move to another slot, with room bytes to spare.
func (t *Table) apply(at place, h header, s *splice, room int) mem {
	p, c := t.pool, t.chunkAt(at)
	old := c.ref(at.page)
	m := p.mem(old)
	length := h.length() + s.grown
	n := (length + 7) >> 3
	c.setMarks(c.marks() | chunkHasDirty)
	t.forget(old, h)
	if n+ownerBytes <= slotBytes(old) {
		s.within(m, h.length())
		t.remember(old)
	} else {
		id := pageOwner(t.chunkID(at), at.page)
		fresh := p.alloc(n+room, id)
		m = p.mem(fresh)
		s.copyTo(m, p.mem(old), h.length())
		p.setOwner(fresh, id) // the copy wrote whole words
		t.chunkAt(at).setRef(at.page, fresh)
		t.remember(fresh)
		p.release(old)
	}
	m.set(length, 8*n-length, 0)
	m.setHeader(h&^(0xfffff<<37) | header(length)<<37 | pageDirty | pageHot)
	return m
}

func (t *Table) assertAt(at place) {
	if assertions {
		b := page(t.pool.slot(t.chunkAt(at).ref(at.page)))
		t.assertPage(at, b[:b.header().bytes()])
	}
}

// shiftLists counts a row that was inserted in the lists of sparse columns;
// column number own has listed it already.
func (m mem) shiftLists(h header, own, row int) {
	p := h.columnsAt()
	for k := range h.cols() {
		d := m.desc(k)
		if d.sparse() {
			seen := k != own
			for i := range d.lanes(0) {
				r := int(m.bits(p+i*rowBits) & mask(rowBits))
				if r >= row && seen {
					m.set(p+i*rowBits, rowBits, uint64(r+1))
				}
				seen = seen || r == row
			}
		}
		p += d.bits(h.rows())
	}
}

// copyBits copies n bits from src at s to dst at d; the two do not overlap. The
// 64 bits of dst behind the last one are undefined.
func copyBits(dst mem, d int, src mem, s, n int) {
	if n <= 0 {
		return
	}
	if head := min(-d&7, n); head > 0 {
		dst.set(d, head, src.bits(s)&mask(head))
		d, s, n = d+head, s+head, n-head
	}
	if s&7 == 0 {
		copy(dst.slice(d>>3, (n+7)>>3), src.slice(s>>3, (n+7)>>3))
		return
	}
	i, j, shift := d>>3, s>>3, uint(s)&7
	for low := src.load(j); n > 0; n -= 64 {
		high := src.load(j + 8)
		dst.store(i, low>>shift|high<<1<<(63-shift))
		low = high
		i, j = i+8, j+8
	}
}

// moveUp moves n bits from bit s on up by by bits, from the last word to the
// first: what is written is never read again.
func (m mem) moveUp(s, n, by int) {
	d := s + by
	if tail := min((d+n)&7, n); tail > 0 {
		n -= tail
		m.set(d+n, tail, m.bits(s+n)&mask(tail))
	}
	if by&7 == 0 {
		whole := n >> 3
		copy(m.slice((d+n)>>3-whole, whole), m.slice((s+n)>>3-whole, whole))
		n &= 7
	}
	if n >= 64 {
		// Half of the work of an insert is this loop: each word is read once, the
		// bits that it shares with the next are kept.
		from, to := (s+n)>>3, (d+n)>>3
		shift := uint(s+n) & 7
		for high := uint64(m.byte(from)); n >= 64; n -= 64 {
			from, to = from-8, to-8
			low := m.load(from)
			m.store(to, low>>shift|high<<1<<(63-shift))
			high = low
		}
	}
	if n > 0 {
		m.set(d, n, m.word(s)&mask(n))
	}
}
