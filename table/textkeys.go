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
	p := b.placeText(k)
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

func (b page) placeText(k string) (p textPlace) {
	h := b.header()
	prefix, r := b.texts(h)
	n := 0
	for n < len(prefix) && n < len(k) && prefix[n] == k[n] {
		n++
	}
	if n < len(prefix) {
		if n < len(k) && k[n] > prefix[n] {
			p.row = h.rows()
		}
		return p
	}
	p.prefixed, p.rest = true, n
	k = k[n:]
	end := h.keysAt() + h.keyBytes()
	// k is above every key so far and shares match bytes with the last of them.
	for ; p.row < h.rows(); p.row++ {
		p.at = end - len(r.b)
		shared, own := r.next()
		if shared > p.match {
			continue // k differs from this key where it differs from the last
		}
		if shared < p.match {
			return p // this key went up where k agrees with the last
		}
		i := 0
		for i < len(own) && p.match+i < len(k) && own[i] == k[p.match+i] {
			i++
		}
		p.ok = i == len(own) && p.match+i == len(k)
		if p.ok || p.match+i == len(k) || i < len(own) && k[p.match+i] < own[i] {
			p.drop, p.shared, p.own = end-len(r.b)-p.at-len(own)+i, shared+i, len(own)-i
			return p
		}
		p.match += i
	}
	p.at = end
	return p
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
