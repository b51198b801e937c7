package table

import "math/bits"

// plan returns the header of a page of rows lo..hi-1 with the separator sep. It
// writes the keys, when they are texts, where they belong in buf, which it may
// replace by a longer one. It reports false when the rows do not fit the format;
// that many or more bytes are not one page anyway.
func (r *rows) plan(buf []byte, lo, hi int, sep Key) (_ []byte, h header, ok bool) {
	if hi-lo > rowsMax {
		return buf, 0, false
	}
	cols := r.chooseForms(lo, hi)
	var keys int
	if r.text {
		at := (headerBits + descBits*cols) / 8
		buf = appendTexts(sized(buf, at)[:at], hi-lo, func(i int) []byte { return r.textAt(lo + i) })
		if keys = len(buf) - at; keys > keyBytesMax {
			return buf, 0, false
		}
	} else {
		low, buckets := lowBitsFor(hi-lo, r.nums[hi-1]-sep.Num)
		keys = low | buckets<<6
	}
	h = newHeader(hi-lo, cols, keys, 0, r.text)
	length := h.columnsAt()
	for i, used := range r.tally.used {
		if used {
			length += r.tally.descs[i].bits(hi - lo)
		}
	}
	if length > pageBitsMax {
		return buf, 0, false
	}
	return buf, newHeader(hi-lo, cols, keys, length, r.text), true
}

// pack writes rows lo..hi-1 as a page with the separator sep at the start of buf,
// which it may replace by a longer one. It reports false when plan does.
func (r *rows) pack(buf []byte, lo, hi int, sep Key) (b page, n int, ok bool) {
	buf, h, ok := r.plan(buf, lo, hi, sep)
	if !ok {
		return page(buf), 0, false
	}
	have := 0
	if r.text {
		have = len(buf)
	}
	n = h.bytes()
	buf = sized(buf, n+padBytes)[:n+padBytes]
	clear(buf[have:])
	if !r.text {
		putInts(buf, h.keysAt(), r.nums[lo:hi], sep.Num, h.lowBits(), h.buckets())
	}
	b = page(buf)
	b.setHeader(h)
	i, at := 0, h.columnsAt()
	for k, c := range r.cols {
		if !r.tally.used[k] {
			continue
		}
		d := r.tally.descs[k]
		b.setDesc(i, d)
		c.pack(memOf(b), d, at, lo, hi)
		at += d.bits(hi - lo)
		i++
	}
	return b, n, true
}

// sized returns b with a capacity of n or more, contents kept.
func sized(b []byte, n int) []byte {
	if cap(b) >= n {
		return b
	}
	grown := make([]byte, len(b), max(n, 2*cap(b)))
	copy(grown, b)
	return grown
}

// tally holds the forms chosen for the columns of rows.
type tally struct {
	descs []desc
	used  []bool
}

// chooseForms finds the smallest form of every column of rows lo..hi-1 and
// returns how many columns occur.
func (r *rows) chooseForms(lo, hi int) (cols int) {
	t := &r.tally
	t.descs, t.used = t.descs[:0], t.used[:0]
	for _, c := range r.cols {
		d, used := c.choose(lo, hi)
		t.descs, t.used = append(t.descs, d), append(t.used, used)
		if used {
			cols++
		}
	}
	return cols
}

// fit says how many bits a lane must have, all ones excluded, for the value v; 64
// when no level but the last holds it.
func fit(v int64, signed bool) int {
	u, ok := symbol(v, signed)
	if !ok {
		return 64
	}
	return bits.Len64(u + 1)
}

// classes counts values by the narrowest level that holds them, 0: 2 bits, 1: 4,
// 2: 8, 3: 16, 4: 32, 5: 64: as they are, and as they would be if they doubled.
type classes struct{ now, later [6]int }

func (c *classes) add(n int) {
	c.now[classOfLen[n]]++
	c.later[classOfLen[min(n+1, 64)]]++
}

// classOfLen is the class of a symbol by the bits it needs.
var classOfLen = [65]int{33: 5, 34: 5, 35: 5, 36: 5, 37: 5, 38: 5, 39: 5, 40: 5, 41: 5, 42: 5, 43: 5, 44: 5, 45: 5, 46: 5, 47: 5, 48: 5,
	49: 5, 50: 5, 51: 5, 52: 5, 53: 5, 54: 5, 55: 5, 56: 5, 57: 5, 58: 5, 59: 5, 60: 5, 61: 5, 62: 5, 63: 5, 64: 5,
	3: 1, 4: 1, 5: 2, 6: 2, 7: 2, 8: 2, 9: 3, 10: 3, 11: 3, 12: 3, 13: 3, 14: 3, 15: 3, 16: 3,
	17: 4, 18: 4, 19: 4, 20: 4, 21: 4, 22: 4, 23: 4, 24: 4, 25: 4, 26: 4, 27: 4, 28: 4, 29: 4, 30: 4, 31: 4, 32: 4}

// choose returns the best form of rows lo..hi-1 of the column: the one that would
// be the smallest if every value doubled. Counters grow: a form that just fits
// today moves value after value to wider levels tomorrow, and each such escape
// also costs time in every add; it counts as a bit. So does each absent cell in
// lanes of one bit, where every value is an escape.
func (c *cells) choose(lo, hi int) (best desc, used bool) {
	var plain, signed classes
	m, negative := 0, false
	for w := lo >> 6; w <= (hi-1)>>6; w++ {
		x := c.present[w]
		if w == lo>>6 {
			x &^= mask(lo & 63)
		}
		if end := hi - w<<6; end < 64 {
			x &= mask(end)
		}
		for ; x != 0; x &= x - 1 {
			v := c.value[w<<6+bits.TrailingZeros64(x)]
			plain.add(fit(v, false))
			negative = negative || v <= 0
			m++
		}
	}
	if m == 0 {
		return 0, false
	}
	bestCost := int(^uint(0) >> 1)
	try := func(cl *classes, flags desc) {
		for form := range formCount {
			later, escapes := levelCounts(form, m, &cl.later)
			for _, sparse := range [2]bool{false, true} {
				if sparse && form < sparseFormMin {
					continue
				}
				d := flags | desc(c.col) | desc(form)<<formShift
				if sparse {
					d |= descSparse | desc(m)<<laneShift
				}
				cost := (d | later).bits(hi-lo) + escapes
				if form == 0 {
					cost += hi - lo - m
				}
				if cost < bestCost {
					now, _ := levelCounts(form, m, &cl.now)
					best, bestCost = d|now, cost
				}
			}
		}
	}
	try(&plain, 0)
	if negative {
		for i := lo; i < hi; i++ {
			if c.has(i) {
				signed.add(fit(c.value[i], true))
			}
		}
		try(&signed, descSigned)
	}
	return best, true
}

// levelCounts returns the counts of the levels of a descriptor for m values, and
// their sum.
func levelCounts(form, m int, classes *[6]int) (d desc, escapes int) {
	w := &levelBits[form]
	class := 0
	for k := 0; w[k] != 64; k++ {
		for class < 5 && 2<<class <= w[k] {
			m -= classes[class]
			class++
		}
		d |= desc(m) << (countShift + 8*uint(k))
		escapes += m
	}
	return d, escapes
}

// pack writes rows lo..hi-1 of the column as d says at bit p of the zeroed b.
func (c *cells) pack(m mem, d desc, p, lo, hi int) {
	w := &levelBits[d.form()]
	lanes, list := d.lanes(hi-lo), p
	if d.sparse() {
		p += lanes * rowBits
	}
	var next [levelsMax]int
	next[0] = p
	for k, count := 1, lanes; w[k-1] != 64; k++ {
		next[k] = next[k-1] + count*w[k-1]
		if w[k] != 64 {
			count = d.count(k)
		}
	}
	for i := lo; i < hi; i++ {
		if !c.has(i) {
			if !d.sparse() {
				next[0] += w[0]
			}
			continue
		}
		if d.sparse() {
			m.set(list, rowBits, uint64(i-lo))
			list += rowBits
		}
		u, ok := symbol(c.value[i], d.signed())
		for k := 0; ; k++ {
			width, at := w[k], next[k]
			next[k] += width
			if width == 64 {
				m.set(at, 64, uint64(c.value[i]))
				break
			}
			if ok && u < mask(width) {
				m.set(at, width, u)
				break
			}
			m.set(at, width, mask(width))
		}
	}
}
