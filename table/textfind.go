package table

import (
	"math/bits"
	"unsafe"
)

// Texts are compared by their heads, the first eight bytes as a big-endian
// number, zeros where a text is shorter; only texts with equal heads are compared
// byte by byte. What is searched is halved without branches but for those.

// head is the head of the n bytes at byte i; 8 bytes from there are read.
func (m mem) head(i, n int) uint64 {
	return bits.ReverseBytes64(m.load(i)) &^ (^uint64(0) >> uint(8*n))
}

func textMem(s string) mem { return mem{unsafe.Pointer(unsafe.StringData(s))} }

func headOf(s string) (h uint64) {
	m := textMem(s)
	switch n := len(s); {
	case n >= 8:
		return bits.ReverseBytes64(m.load(0))
	case n >= 4:
		high, low := bits.ReverseBytes32(m.load32(0)), bits.ReverseBytes32(m.load32(n-4))
		return uint64(high)<<32 | uint64(low)<<uint(64-8*n)
	}
	for i := range len(s) {
		h |= uint64(s[i]) << uint(56-8*i)
	}
	return h
}

// common returns how many bytes the n bytes at byte i and s begin with alike. Up
// to 8 bytes behind the n are read.
func (m mem) common(i, n int, s string) int {
	n = min(n, len(s))
	o, at := textMem(s), 0
	for ; at < n && at+8 <= len(s); at += 8 {
		if x := m.load(i+at) ^ o.load(at); x != 0 {
			return min(n, at+bits.TrailingZeros64(x)>>3)
		}
	}
	if at >= n {
		return n
	}
	for at < n && m.byte(i+at) == o.byte(at) {
		at++
	}
	return at
}

// above tells whether the n bytes at byte i are a text above s.
func (m mem) above(i, n int, s string) bool {
	c := m.common(i, n, s)
	return c < n && (c == len(s) || m.byte(i+c) > s[c])
}

// textPlace is where a text key stands among the keys of a page, or would.
type textPlace struct {
	row   int
	ok    bool
	run   int  // -1: the key does not begin with the prefix that all keys share
	first bool // it would be the first key of the page
	rest  int  // the key's bytes from here on are behind the prefix
	at    int  // byte of the page where the entry of row begins, or its run ends
	match int  // bytes behind the prefix shared with the key before in the run
	// Of the entry of row, when the key would stand before it and shares more with
	// it than the key before does: bytes it would lose, and its two lengths then.
	drop, shared, own int
}

// seekText finds the place of key k.
func (m mem) seekText(h header, k string, p *textPlace) {
	*p = textPlace{}
	b := m.textBlock(h)
	p.rest = m.common(b.prefix, b.shared, k)
	if p.rest < b.shared {
		p.run = -1
		if p.rest < len(k) && k[p.rest] > m.byte(b.prefix+p.rest) {
			p.row = b.rows
		}
		return
	}
	k = k[p.rest:]
	p.run = m.findRun(&b, k)
	row, end := m.runRows(&b, p.run)
	// k is above every key so far and shares match bytes with the last of them.
	at, match := m.place(&b, p.run), 0
	for first := row; row < end; row++ {
		c := int(m.byte(at)) // most entries need no call
		shared, own, body := c&15, c>>4, at+1
		if shared == nibbleMax || own == nibbleMax {
			shared, own, body = m.entry(at)
		}
		if shared > match {
			at = body + own
			continue // k differs from this key where it differs from the last
		}
		if shared < match {
			break // this key went up where k agrees with the last
		}
		i := m.common(body, own, k[match:])
		p.ok = i == own && match+i == len(k)
		if p.ok || match+i == len(k) || i < own && k[match+i] < m.byte(body+i) {
			p.drop, p.shared, p.own = body-at+i, shared+i, own-i
			p.first = row == first
			break
		}
		match += i
		at = body + own
	}
	p.row, p.at, p.match = row, at, match
}

// findRun returns the last run whose first key is not above k, or the first run;
// k goes without the prefix.
func (m mem) findRun(b *textBlock, k string) (run int) {
	head := headOf(k)
	for size := b.runs; size > 1; {
		half := size >> 1
		at := m.place(b, run+half)
		n, body := int(m.byte(at))>>4, at+1
		if n == nibbleMax {
			n, body = m.length(body)
			n += nibbleMax
		}
		got := m.head(body, n)
		_, above := bits.Sub64(head, got, 0)
		if head == got && m.above(body, n, k) {
			above = 1
		}
		run += half & (int(above) - 1)
		size -= half
	}
	return run
}

// findSep returns the last entry of a chunk of texts whose separator is not above
// k, which is not below the first one.
func (m mem) findSep(k string) (page int) {
	size := int(m.byte(0))
	ends := chunkHead + 5*size
	texts, prefix := ends+2*size, int(m.load(8))
	n := m.common(texts, prefix, k)
	if n < prefix {
		if n < len(k) && k[n] > m.byte(texts+n) {
			return size - 1
		}
		return 0
	}
	k = k[n:]
	texts += prefix
	head := headOf(k)
	for size > 1 {
		half := size >> 1
		e := int(m.load32(ends + 2*(page+half) - 2))
		from, n := e&0xffff, e>>16-e&0xffff
		got := m.head(texts+from, n)
		_, above := bits.Sub64(head, got, 0)
		if head == got && m.above(texts+from, n, k) {
			above = 1
		}
		page += half & (int(above) - 1)
		size -= half
	}
	return page
}

// findText is findChunk for texts.
func (t *Table) findText(k string) (chunk int) {
	tr := &t.trees[1]
	if tr.stale {
		t.readFirsts()
	}
	size := len(tr.chunks)
	if size == 0 {
		return -1
	}
	n := textMem(tr.prefix).common(0, len(tr.prefix), k)
	if n == len(tr.prefix) {
		head := headOf(k[n:])
		for size > 1 {
			half := size >> 1
			got := tr.firsts[chunk+half]
			_, above := bits.Sub64(head, got, 0)
			if head == got && t.startsAbove(chunk+half, k) {
				above = 1
			}
			chunk += half & (int(above) - 1)
			size -= half
		}
	} else if n < len(k) && k[n] > tr.prefix[n] {
		chunk = size - 1
	}
	if chunk == 0 && t.startsAbove(0, k) {
		return -1
	}
	return chunk
}

// startsAbove tells whether chunk i of the texts begins above k.
func (t *Table) startsAbove(i int, k string) bool {
	c := t.pool.mem(t.pool.chunks[t.trees[1].chunks[i]])
	at, n := c.firstText()
	return c.above(at, n, k)
}

// firstText is where the first separator of a chunk of texts stands, and its
// length.
func (m mem) firstText() (at, n int) {
	size := int(m.byte(0))
	ends := chunkHead + 5*size
	return ends + 2*size + int(m.load(8)), int(m.load16(ends))
}

// readFirsts reads the heads of the first separators of all chunks of texts but
// the first, behind the prefix these share.
func (t *Table) readFirsts() {
	tr := &t.trees[1]
	tr.stale, tr.prefix, tr.firsts = false, "", tr.firsts[:0]
	n := len(tr.chunks)
	first := func(i int) []byte {
		c := t.pool.mem(t.pool.chunks[tr.chunks[i]])
		return c.slice(c.firstText())
	}
	if n > 1 {
		l := first(1)
		c := commonPrefix(l, first(n-1))
		tr.prefix = (string(l[:c]) + "12345678")[:c] // what is behind it is read
	}
	for i := range n {
		head := uint64(0)
		if i > 0 {
			head = headOf(view(first(i)[len(tr.prefix):]))
		}
		tr.firsts = append(tr.firsts, head)
	}
}
