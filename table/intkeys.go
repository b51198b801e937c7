package table

import "math/bits"

// Integer keys are written as Elias-Fano codes of their offset from the page's
// separator. The low L bits of each offset are packed; the high part h names a
// bucket, and the buckets are written in unary: for each bucket a one per key,
// then a zero. There are exactly as many buckets as the last key needs, or a few
// empty ones more.
//
// Source: Elias 1974, Fano 1971; Vigna, Quasi-succinct indices, WSDM 2013.

// findInt returns the row of the key at offset off, or the row before which it
// would stand, and its place among the unary bits.
func (m mem) findInt(h header, off uint64) (row, unary int, ok bool) {
	if row, unary, ok = m.bucket(h, off); ok {
		row, unary, ok = m.inBucket(h, off, row, unary)
	}
	return row, unary, ok
}

// bucket returns where the bucket of offset off begins: the row of its first key
// and that key's place among the unary bits. It is false when there is no such
// bucket. It reads the first 200 bytes of a page at most.
func (m mem) bucket(h header, off uint64) (row, unary int, ok bool) {
	n := h.buckets()
	bucket := off >> uint(h.lowBits())
	if bucket >= uint64(n) {
		return h.rows(), h.rows() + n, false
	}
	if bucket > 0 {
		unary = m.selectZero(h.keysAt(), int(bucket)-1) + 1
		row = unary - int(bucket)
	}
	return row, unary, true
}

// lowsAt is the first bit of the low parts.
func (h header) lowsAt() int { return 8*h.keysAt() + h.rows() + h.buckets() }

// inBucket looks for offset off in its bucket, which bucket has found. Three keys
// are compared without branches; buckets have one on average.
func (m mem) inBucket(h header, off uint64, row, unary int) (_, _ int, ok bool) {
	low := h.lowBits()
	at := h.lowsAt() + row*low
	run := bits.TrailingZeros64(^m.bits(8*h.keysAt() + unary))
	if run > 3 || low > 57 {
		return m.inLongBucket(h, off, row, unary)
	}
	all := mask(low)
	off &= all
	below0 := (m.bits(at)&all - off) >> 63 // 1: the key is below off
	below1 := (m.bits(at+low)&all - off) >> 63 & below0
	below2 := (m.bits(at+2*low)&all - off) >> 63 & below1
	i := min(int(below0+below1+below2), run)
	return row + i, unary + i, i < run && m.bits(at+i*low)&all == off
}

// inLongBucket is inBucket for buckets of any number of keys, and any low part.
func (m mem) inLongBucket(h header, off uint64, row, unary int) (_, _ int, ok bool) {
	low, at, lows := h.lowBits(), 8*h.keysAt(), h.lowsAt()
	off &= mask(low)
	for ; m.bits(at+unary)&1 == 1; row, unary = row+1, unary+1 {
		if got := m.word(lows+row*low) & mask(low); got >= off {
			return row, unary, got == off
		}
	}
	return row, unary, false
}

// appendInts appends all keys, ascending.
func (b page) appendInts(dst []uint64, sep uint64) []uint64 {
	h, m := b.header(), memOf(b)
	low, at := h.lowBits(), 8*h.keysAt()
	lows := h.lowsAt()
	unary := 0
	for row := range h.rows() {
		ones := m.bits(at + unary)
		for ones&(1<<56-1) == 0 {
			unary += 56
			ones = m.bits(at + unary)
		}
		unary += bits.TrailingZeros64(ones)
		dst = append(dst, sep+uint64(unary-row)<<uint(low)+m.word(lows+row*low)&mask(low))
		unary++
	}
	return dst
}

// lowBitsFor chooses L for n keys up to offset last.
func lowBitsFor(n int, last uint64) (low, buckets int) {
	best := int(^uint(0) >> 1)
	for l := max(0, bits.Len64(last/uint64(n))-2); l < 64; l++ {
		high := last >> uint(l)
		if high >= bucketsMax {
			continue
		}
		if cost := n*l + int(high); cost < best {
			best, low, buckets = cost, l, int(high)+1
		} else {
			break
		}
	}
	return low, buckets
}

// putInts writes keys, ascending and not below sep, at byte at of the zeroed b.
func putInts(b []byte, at int, keys []uint64, sep uint64, low, buckets int) {
	m, lows := memOf(b), 8*at+len(keys)+buckets
	for i, k := range keys {
		off := k - sep
		p := int(off>>uint(low)) + i
		b[at+p>>3] |= 1 << uint(p&7)
		m.set(lows+i*low, low, off&mask(low))
	}
}
