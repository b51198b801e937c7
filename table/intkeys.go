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
func (b page) findInt(h header, off uint64) (row, unary int, ok bool) {
	if row, unary, ok = b.bucket(h, off); ok {
		row, unary, ok = b.inBucket(h, off, row, unary)
	}
	return row, unary, ok
}

// bucket returns where the bucket of offset off begins: the row of its first key
// and that key's place among the unary bits. It is false when there is no such
// bucket. It reads the first 200 bytes of a page at most.
func (b page) bucket(h header, off uint64) (row, unary int, ok bool) {
	n := h.buckets()
	bucket := off >> uint(h.lowBits())
	if bucket >= uint64(n) {
		return h.rows(), h.rows() + n, false
	}
	if bucket > 0 {
		unary = selectZero(b, h.keysAt(), int(bucket)-1) + 1
		row = unary - int(bucket)
	}
	return row, unary, true
}

// lowsAt is the first bit of the low parts.
func (h header) lowsAt() int { return 8*h.keysAt() + h.rows() + h.buckets() }

// inBucket looks for offset off in its bucket, which bucket has found.
func (b page) inBucket(h header, off uint64, row, unary int) (_, _ int, ok bool) {
	low, at, lows := h.lowBits(), h.keysAt(), h.lowsAt()
	off &= mask(low)
	// Ones from here on are keys of the bucket; there are one or two as a rule.
	for ones := word(b, 8*at+unary); ones&1 == 1; row, unary = row+1, unary+1 {
		got := narrow(b, lows+row*low, min(low, 57))
		if low > 57 {
			got = get(b, lows+row*low, low)
		}
		if got >= off {
			return row, unary, got == off
		}
		if ones >>= 1; ones == 0 {
			ones = word(b, 8*at+unary+1)
		}
	}
	return row, unary, false
}

// appendInts appends all keys, ascending.
func (b page) appendInts(dst []uint64, sep uint64) []uint64 {
	h := b.header()
	low, at := h.lowBits(), h.keysAt()
	lows := h.lowsAt()
	bucket, unary := 0, 0
	for row := range h.rows() {
		for zeros := bits.TrailingZeros64(word(b, 8*at+unary)); zeros > 0; zeros = bits.TrailingZeros64(word(b, 8*at+unary)) {
			bucket, unary = bucket+zeros, unary+zeros
		}
		unary++
		dst = append(dst, sep+uint64(bucket)<<uint(low)+get(b, lows+row*low, low))
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
	lows := 8*at + len(keys) + buckets
	for i, k := range keys {
		off := k - sep
		p := int(off>>uint(low)) + i
		b[at+p>>3] |= 1 << uint(p&7)
		set(b, lows+i*low, low, off&mask(low))
	}
}
