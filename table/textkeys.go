package table

import "encoding/binary"

// Text keys are written as a block of bytes:
//
//	uvarint length of the prefix that all keys share | prefix
//	for each key: shared and own length | own bytes
//
// shared is how many bytes behind the prefix the key has in common with the key
// before it (the first: none), own bytes are what follows. The two lengths take
// one byte, shared in the low half; a half of 15 means that 15 less than the
// length follows as a uvarint, shared before own.
const nibbleMax = 15

type textReader struct {
	b []byte // what is left of the block
}

func (r *textReader) uvarint() int {
	v, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return int(v)
}

// next returns the next key: bytes shared behind the prefix, own bytes.
func (r *textReader) next() (shared int, own []byte) {
	c := int(r.b[0])
	r.b = r.b[1:]
	shared, n := c&15, c>>4
	if shared == nibbleMax {
		shared += r.uvarint()
	}
	if n == nibbleMax {
		n += r.uvarint()
	}
	own, r.b = r.b[:n], r.b[n:]
	return shared, own
}

// texts returns a reader of the keys of b, and the prefix they share.
func (b page) texts(h header) (prefix []byte, r textReader) {
	at := h.keysAt()
	r.b = b[at : at+h.keyBytes()]
	n := r.uvarint()
	prefix, r.b = r.b[:n], r.b[n:]
	return prefix, r
}

// findText returns the row of key k, or the row before which it would stand.
func (b page) findText(k string) (row int, ok bool) {
	p := memOf(b).placeText(b.header(), k)
	return p.row, p.ok
}

// textPlace is where a text key stands among the keys of a page, or would.
type textPlace struct {
	row      int
	ok       bool
	prefixed bool // the key begins with the prefix that all keys share
	rest     int  // the key's bytes from here on are behind the prefix
	at       int  // byte of the page where the entry of row begins, or the block ends
	match    int  // bytes behind the prefix shared with the key before
	// Of the entry of row, when the key would stand before it and shares more with
	// it than the key before does: bytes it would lose, and its two lengths then.
	drop, shared, own int
}

// placeText looks for k among the keys of a page.
func (m mem) placeText(h header, k string) (p textPlace) {
	at, rows := h.keysAt(), h.rows()
	end := at + h.keyBytes()
	prefix, at := m.uvarint(at)
	n := m.matching(at, prefix, k)
	if n < prefix {
		if n < len(k) && k[n] > m.byte(at+n) {
			p.row = rows
		}
		return p
	}
	at += prefix
	p.prefixed, p.rest = true, prefix
	k = k[prefix:]
	// k is above every key so far and shares match bytes with the last of them.
	row, match := 0, 0
	for ; row < rows; row++ {
		p.at = at
		c := int(m.byte(at))
		at++
		shared, own := c&nibbleMax, c>>4
		if shared == nibbleMax {
			n, at = m.uvarint(at)
			shared += n
		}
		if own == nibbleMax {
			n, at = m.uvarint(at)
			own += n
		}
		if shared > match {
			at += own
			continue // k differs from this key where it differs from the last
		}
		if shared < match {
			break // this key went up where k agrees with the last
		}
		i := m.matching(at, own, k[match:])
		ends := match+i == len(k)
		p.ok = ends && i == own
		if ends || i < own && k[match+i] < m.byte(at+i) {
			p.drop, p.shared, p.own = at-p.at+i, shared+i, own-i
			break
		}
		match += i
		at += own
	}
	if row == rows {
		p.at = end
	}
	p.row, p.match = row, match
	return p
}

// uvarint reads a uvarint at byte i and returns where it ends.
func (m mem) uvarint(i int) (v, end int) {
	for shift := 0; ; shift += 7 {
		c := int(m.byte(i))
		i++
		v |= c & 0x7f << shift
		if c < 0x80 {
			return v, i
		}
	}
}

// matching counts the bytes that the n bytes from byte at on and k begin with
// alike.
func (m mem) matching(at, n int, k string) (i int) {
	n = min(n, len(k))
	for i < n && m.byte(at+i) == k[i] {
		i++
	}
	return i
}

// entries appends what stands at p.at instead of p.drop bytes when k is inserted
// there: its entry, and what begins the next one.
func (p *textPlace) entries(dst []byte, k string) []byte {
	dst = appendNibbles(dst, p.match, len(k)-p.rest-p.match)
	dst = append(dst, k[p.rest+p.match:]...)
	if p.drop > 0 {
		dst = appendNibbles(dst, p.shared, p.own)
	}
	return dst
}

func appendNibbles(dst []byte, shared, own int) []byte {
	dst = append(dst, byte(min(shared, nibbleMax)|min(own, nibbleMax)<<4))
	if shared >= nibbleMax {
		dst = binary.AppendUvarint(dst, uint64(shared-nibbleMax))
	}
	if own >= nibbleMax {
		dst = binary.AppendUvarint(dst, uint64(own-nibbleMax))
	}
	return dst
}

// appendTexts appends the block of the keys, ascending.
func appendTexts(dst []byte, n int, key func(i int) []byte) []byte {
	first := key(0)
	prefix := commonPrefix(first, key(n-1))
	dst = binary.AppendUvarint(dst, uint64(prefix))
	dst = append(dst, first[:prefix]...)
	last := first[:prefix]
	for i := range n {
		k := key(i)
		shared := commonPrefix(last, k) - prefix
		dst = appendNibbles(dst, shared, len(k)-prefix-shared)
		dst = append(dst, k[prefix+shared:]...)
		last = k
	}
	return dst
}
