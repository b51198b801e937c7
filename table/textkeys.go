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
	h := b.header()
	prefix, r := b.texts(h)
	n := 0
	for n < len(prefix) && n < len(k) && prefix[n] == k[n] {
		n++
	}
	if n < len(prefix) {
		if n < len(k) && k[n] > prefix[n] {
			return h.rows(), false
		}
		return 0, false
	}
	k = k[n:]
	// k is above every key so far and shares match bytes with the last of them.
	match := 0
	for row = range h.rows() {
		shared, own := r.next()
		if shared > match {
			continue // k differs from this key where it differs from the last
		}
		if shared < match {
			return row, false // this key went up where k agrees with the last
		}
		i := 0
		for i < len(own) && match+i < len(k) && own[i] == k[match+i] {
			i++
		}
		if i == len(own) {
			if match+i == len(k) {
				return row, true
			}
		} else if match+i == len(k) || k[match+i] < own[i] {
			return row, false
		}
		match += i
	}
	return h.rows(), false
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
