package table

// insertText is insertNum for a text key, which is not in the page; p is its
// place there. Only the run that takes it changes, and what lists the runs.
func (t *Table) insertText(at place, k string, p *textPlace, col Column, v int64) bool {
	if p.run < 0 {
		return false
	}
	m := t.memAt(at)
	h := m.header()
	b := m.textBlock(h)
	if first, end := m.runRows(&b, p.run); end-first == runRowsMax {
		if !t.divideRun(at, p.run) {
			return false
		}
		m = t.memAt(at)
		h = m.header()
		b = m.textBlock(h)
		m.seekText(h, k, p)
	}
	t.pool.entries = p.entries(t.pool.entries[:0], k)
	grown := len(t.pool.entries) - p.drop
	if grown < 0 || h.keyBytes()+grown > keyBytesMax {
		return false
	}
	s := t.pool.splice.reset()
	s.insert(8*p.at, 8*grown, 0)
	m, ok := t.insertRow(at, h, s, p.row, h.keyBytes()+grown, col, v)
	if !ok {
		return false
	}
	copy(m.slice(p.at, len(t.pool.entries)), t.pool.entries)
	for i := p.run + 1; i < b.runs; i++ {
		m.slice(b.firsts, b.runs)[i]++
	}
	m.shiftRuns(&b, p.run+1, grown)
	t.assertAt(at)
	return true
}

// entries appends what stands at p.at instead of p.drop bytes when k is inserted
// there: its entry, and what begins the next one.
func (p *textPlace) entries(dst []byte, k string) []byte {
	k = k[p.rest+p.match:]
	dst = appendEntry(dst, p.match, len(k))
	dst = append(dst, k...)
	if p.drop > 0 {
		dst = appendEntry(dst, p.shared, p.own)
	}
	return dst
}

// shiftRuns notes that the runs from run i on stand by bytes further on.
func (m mem) shiftRuns(b *textBlock, i, by int) {
	for ; i < b.runs; i++ {
		m.store16(b.places+2*i, m.load16(b.places+2*i)+uint16(by))
	}
}

// divideRun divides a run of the page at in the middle, where a key is made whole.
// It reports false when the page has no room for that.
func (t *Table) divideRun(at place, run int) bool {
	m := t.memAt(at)
	h := m.header()
	b := m.textBlock(h)
	first, end := m.runRows(&b, run)
	mid := (first + end) / 2
	text := t.pool.entries[:0] // the key
	e := m.place(&b, run)
	shared, own, body := m.entry(e)
	for range mid - first {
		text = append(text[:shared], m.slice(body, own)...)
		e = body + own
		shared, own, body = m.entry(e)
	}
	t.pool.entries = text
	whole := appendEntry(make([]byte, 0, 8+len(text)), 0, shared+own)
	whole = append(whole, text[:shared]...)
	const listed = 3 // bytes that list a run
	grown := len(whole) - (body - e)
	keys := h.keyBytes() + listed + grown
	s := t.pool.splice.reset()
	s.insert(8*(b.firsts+run+1), 8, uint64(mid))
	s.insert(8*(b.places+2*run+2), 16, uint64(e-b.at))
	s.insert(8*e, 8*grown, 0)
	if keys > keyBytesMax || !fits(h, s, t.limitFor(h)) {
		return false
	}
	m = t.apply(at, h, s, 0)
	marks := m.header() & pageMarks
	m.setHeader(newHeader(h.rows(), h.cols(), keys, h.length()+s.grown, true) | marks)
	m.slice(b.firsts-1, 1)[0]++
	b = m.textBlock(m.header())
	copy(m.slice(e+listed, len(whole)), whole)
	m.shiftRuns(&b, 0, listed)
	m.shiftRuns(&b, run+2, grown)
	t.assertAt(at)
	return true
}
