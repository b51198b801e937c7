package table

import (
	"encoding/binary"
	"unsafe"
)

// Text keys are written as a block of bytes. They lie in runs: the first key of
// a run is whole but for the prefix that all keys of the page share, each further
// one goes without what it shares with the key before it. Where the runs begin is
// listed, so that a key is found by halving the runs and reading one of them.
//
//	uvarint length of the prefix | prefix
//	number of runs, 8 bits
//	for each run: the row of its first key, 8 bits
//	for each run: where it begins, bytes from the start of the block, 16 bits
//	for each key: shared and own length | own bytes
//
// shared is how many bytes behind the prefix the key has in common with the key
// before it (the first of a run: none), own bytes are what follows. The two
// lengths take one byte, shared in the low half; a half of 15 means that 15 less
// than the length follows as a uvarint, shared before own.
const (
	nibbleMax  = 15
	runRows    = 16 // rows of a run when a page is packed
	runRowsMax = 24 // more are divided
)

// textBlock tells where the parts of a block are, in bytes of its page.
type textBlock struct {
	at             int
	prefix, shared int // the prefix and its length
	runs           int
	firsts, places int
	rows           int
}

// length reads a uvarint of one or two bytes.
func (m mem) length(at int) (n, next int) {
	n = int(m.byte(at))
	if n < 0x80 {
		return n, at + 1
	}
	return n&0x7f | int(m.byte(at+1))<<7, at + 2
}

func (m mem) textBlock(h header) (b textBlock) {
	b.at = h.keysAt()
	b.shared, b.prefix = m.length(b.at)
	b.firsts = b.prefix + b.shared + 1
	b.runs = int(m.byte(b.firsts - 1))
	b.places = b.firsts + b.runs
	b.rows = h.rows()
	return b
}

// place is the byte of the page where run i begins.
func (m mem) place(b *textBlock, i int) int { return b.at + int(m.load16(b.places+2*i)) }

// runRows returns the rows of run i, from first to end-1.
func (m mem) runRows(b *textBlock, i int) (first, end int) {
	end = b.rows
	if i+1 < b.runs {
		end = int(m.byte(b.firsts + i + 1))
	}
	return int(m.byte(b.firsts + i)), end
}

// entry reads the lengths of a key; its own bytes are at body.
func (m mem) entry(at int) (shared, own, body int) {
	c := int(m.byte(at))
	shared, own, body = c&15, c>>4, at+1
	if shared == nibbleMax {
		shared, body = m.length(body)
		shared += nibbleMax
	}
	if own == nibbleMax {
		own, body = m.length(body)
		own += nibbleMax
	}
	return shared, own, body
}

func (m mem) load16(i int) uint16 {
	return binary.LittleEndian.Uint16((*[2]byte)(unsafe.Add(m.p, i))[:])
}

func (m mem) store16(i int, v uint16) {
	binary.LittleEndian.PutUint16((*[2]byte)(unsafe.Add(m.p, i))[:], v)
}

// slice is n bytes from byte i on.
func (m mem) slice(i, n int) []byte { return unsafe.Slice((*byte)(unsafe.Add(m.p, i)), n) }

// unpackTexts appends the keys of the page.
func (r *rows) unpackTexts(m mem, h header) {
	b := m.textBlock(h)
	prefix := m.slice(b.prefix, b.shared)
	at, last := m.place(&b, 0), 0
	for range b.rows {
		shared, own, body := m.entry(at)
		from := len(r.bytes)
		r.bytes = append(r.bytes, prefix...)
		r.bytes = append(r.bytes, r.bytes[last+len(prefix):last+len(prefix)+shared]...)
		r.bytes = append(r.bytes, m.slice(body, own)...)
		r.spans = append(r.spans, span{from, len(r.bytes)})
		at, last = body+own, from
	}
}

func appendEntry(dst []byte, shared, own int) []byte {
	dst = append(dst, byte(min(shared, nibbleMax)|min(own, nibbleMax)<<4))
	if shared >= nibbleMax {
		dst = binary.AppendUvarint(dst, uint64(shared-nibbleMax))
	}
	if own >= nibbleMax {
		dst = binary.AppendUvarint(dst, uint64(own-nibbleMax))
	}
	return dst
}

// appendTexts appends the block of n keys, ascending.
func appendTexts(dst []byte, n int, key func(i int) []byte) []byte {
	base, first := len(dst), key(0)
	prefix := commonPrefix(first, key(n-1))
	dst = binary.AppendUvarint(dst, uint64(prefix))
	dst = append(dst, first[:prefix]...)
	runs := (n + runRows - 1) / runRows
	dst = append(dst, byte(runs))
	for i := range runs {
		dst = append(dst, byte(i*n/runs))
	}
	places := len(dst)
	for range runs {
		dst = append(dst, 0, 0)
	}
	var last []byte
	run := 0
	for i := range n {
		k, shared := key(i)[prefix:], 0
		if i == run*n/runs {
			binary.LittleEndian.PutUint16(dst[places+2*run:], uint16(len(dst)-base))
			run++
		} else {
			shared = commonPrefix(last, k)
		}
		dst = appendEntry(dst, shared, len(k)-shared)
		dst = append(dst, k[shared:]...)
		last = k
	}
	return dst
}
