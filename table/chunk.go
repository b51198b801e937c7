package table

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// chunk is the memory of up to chunkPages neighbouring pages' separators and
// references: one entry of the directory.
//
//	0      entries
//	1      marks
//	2      form: narrow, wide or text
//	3      narrow: shift
//	4..7   narrow: 2^32 * entries / (last separator as stored + 1), to guess entries by
//	8..15  integers: first separator; texts: length of the prefix of all but the first
//	16     a reference for each entry, 32 bits; 0: not in memory
//	then   the number of rows of each entry, 8 bits
//	then   narrow: (separator - first) >> shift, 32 bits each
//	       wide: separators, 64 bits each
//	       text: ends, 16 bits each; prefix; the first; of the others, what follows it
type chunk []byte

const (
	chunkHead     = 16
	chunkPages    = 128
	chunkBytesMax = 12 << 10 // more is split, whatever the number of pages

	formNarrow = 0
	formWide   = 1
	formText   = 2

	chunkDirty      = 1 << 0 // its record changed since it was last collected
	chunkFlushing   = 1 << 1
	chunkHasDirty   = 1 << 2 // it may have pages marked dirty
	chunkHasFlushed = 1 << 3 // it may have pages marked flushing
)

func (c chunk) entries() int        { return int(c[0]) }
func (c chunk) marks() byte         { return c[1] }
func (c chunk) setMarks(m byte)     { c[1] = m }
func (c chunk) form() byte          { return c[2] }
func (c chunk) first() uint64       { return le64(c, 8) }
func (c chunk) ref(i int) ref       { return binary.LittleEndian.Uint32(c[chunkHead+4*i:]) }
func (c chunk) setRef(i int, r ref) { binary.LittleEndian.PutUint32(c[chunkHead+4*i:], r) }

func (c chunk) rows(i int) int { return int(c[chunkHead+4*c.entries()+i]) }

func (c chunk) setRows(i, n int) { c[chunkHead+4*c.entries()+i] = byte(n) }

// sepsAt is the first byte of the separators.
func (c chunk) sepsAt() int { return chunkHead + 5*c.entries() }

// replaceRef puts to in place of from, which is entry i or near it.
func (c chunk) replaceRef(i int, from, to ref) {
	n := c.entries()
	if i >= n {
		i = n - 1
	}
	for lo, hi := i, i; lo >= 0 || hi < n; lo, hi = lo-1, hi+1 {
		if hi < n && c.ref(hi) == from {
			c.setRef(hi, to)
			return
		}
		if lo >= 0 && c.ref(lo) == from {
			c.setRef(lo, to)
			return
		}
	}
	panic("table: a slot's owner does not know it")
}

// sep returns the separator of entry i.
func (c chunk) sep(i int) Key {
	at := c.sepsAt()
	switch c.form() {
	case formNarrow:
		return Key{Num: c.first() + uint64(binary.LittleEndian.Uint32(c[at+4*i:]))<<c[3]}
	case formWide:
		return Key{Num: le64(c, at+8*i)}
	}
	return Key{Text: c.text(i), IsText: true}
}

// text returns the separator of entry i, which stands behind the prefix but for
// the first.
func (c chunk) text(i int) string {
	ends := c[c.sepsAt():]
	texts := ends[2*c.entries():]
	p := int(c.first())
	end := p + int(binary.LittleEndian.Uint16(ends[2*i:]))
	if i == 0 {
		return string(texts[p:end])
	}
	from := p + int(binary.LittleEndian.Uint16(ends[2*i-2:]))
	return string(texts[:p]) + string(texts[from:end])
}

// find returns the last entry whose separator is not above k, which is not below
// the first separator.
func (c chunk) find(k Key) int {
	if k.IsText {
		return memOf(c).findSep(k.Text)
	}
	page, _ := memOf(c).findNum(k.Num)
	return page
}

// findNum is find in a chunk of integers; it returns the separator as well. A
// narrow chunk is searched around the entry where n would be if separators were
// evenly spaced: that and its reference take two or three lines of memory, where
// halving takes six. Searches have no branches: half of them would be guessed
// wrong, and loads for the next lookups of a batch could not begin.
func (m mem) findNum(n uint64) (page int, sep uint64) {
	head, first := m.load(0), m.load(8)
	size := int(head & 0xff)
	at := chunkHead + 5*size
	if byte(head>>16) != formNarrow {
		for size > 1 {
			half := size >> 1
			_, below := bits.Sub64(n, m.load(at+8*(page+half)), 0)
			page += half & (int(below) - 1)
			size -= half
		}
		return page, m.load(at + 8*page)
	}
	shift := uint(head >> 24 & 63)
	off := int(min((n-first)>>shift, 1<<32-1))
	const around = 8
	if size > 2*around {
		guess := int(uint64(off) * (head >> 32) >> 32)
		lo := max(0, min(guess-around, size-2*around))
		hi := lo + 2*around
		if int(m.load32(at+4*lo)) <= off && (hi == size || int(m.load32(at+4*hi)) > off) {
			page, size = lo, 2*around
		}
	}
	for size > 1 {
		half := size >> 1
		below := (off - int(m.load32(at+4*(page+half)))) >> 63 // -1: the entry is above
		page += half &^ below
		size -= half
	}
	return page, first + uint64(m.load32(at+4*page))<<shift
}

// gap returns how far the separator of the page behind page is, 0 when this chunk
// does not say.
func (m mem) gap(page int) uint64 {
	head := m.load(0)
	size := int(head & 0xff)
	if page+1 >= size || byte(head>>16) != formNarrow {
		return 0
	}
	at := chunkHead + 5*size + 4*page
	return uint64(m.load32(at+4)-m.load32(at)) << uint(head>>24&63)
}

// refNum is ref without a bounds check.
func (m mem) refNum(i int) ref { return m.load32(chunkHead + 4*i) }

// directory is a chunk unpacked, for structural changes.
type directory struct {
	text  bool
	seps  []Key
	refs  []ref
	rows  []byte
	marks byte
}

func (d *directory) load(c chunk) {
	d.text = c.form() == formText
	d.seps, d.refs, d.rows = d.seps[:0], d.refs[:0], d.rows[:0]
	for i := range c.entries() {
		d.seps = append(d.seps, c.sep(i))
		d.refs = append(d.refs, c.ref(i))
		d.rows = append(d.rows, byte(c.rows(i)))
	}
	d.marks = c.marks()
}

// insert adds an entry before entry i.
func (d *directory) insert(i int, sep Key, r ref, rows int) {
	d.seps = slices.Insert(d.seps, i, sep)
	d.refs = slices.Insert(d.refs, i, r)
	d.rows = slices.Insert(d.rows, i, byte(rows))
}

func (d *directory) remove(i int) {
	d.seps = slices.Delete(d.seps, i, i+1)
	d.refs = slices.Delete(d.refs, i, i+1)
	d.rows = slices.Delete(d.rows, i, i+1)
}

// bytes returns about, and not less than, the size of entries lo..hi-1 as a chunk.
func (d *directory) bytes(lo, hi int) int {
	n := chunkHead + 13*(hi-lo)
	for _, s := range d.seps[lo:hi] {
		n += len(s.Text)
	}
	return n
}

// pack appends entries lo..hi-1 as a chunk with the marks of d.
func (d *directory) pack(dst []byte, lo, hi int) []byte {
	seps, n := d.seps[lo:hi], hi-lo
	head := [chunkHead]byte{0: byte(n), 1: d.marks}
	var shift uint
	switch {
	case d.text:
		head[2] = formText
	default:
		var all uint64
		first := seps[0].Num
		for _, s := range seps {
			all |= s.Num - first
		}
		last := seps[n-1].Num - first
		for all != 0 && all>>shift&1 == 0 {
			shift++
		}
		if last>>shift > 1<<32-1 {
			head[2], shift = formWide, 0
		}
		head[3] = byte(shift)
		if head[2] == formNarrow {
			factor := min(uint64(n)<<32/(last>>shift+1), 1<<32-1)
			binary.LittleEndian.PutUint32(head[4:], uint32(factor))
		}
		binary.LittleEndian.PutUint64(head[8:], first)
	}
	prefix := 0
	if d.text && n > 1 {
		// The first separator of the first chunk is empty as a rule.
		prefix = commonPrefix([]byte(seps[1].Text), []byte(seps[n-1].Text))
		binary.LittleEndian.PutUint64(head[8:], uint64(prefix))
	}
	dst = append(dst, head[:]...)
	for _, r := range d.refs[lo:hi] {
		dst = binary.LittleEndian.AppendUint32(dst, r)
	}
	dst = append(dst, d.rows[lo:hi]...)
	switch head[2] {
	case formNarrow:
		for _, s := range seps {
			dst = binary.LittleEndian.AppendUint32(dst, uint32((s.Num-seps[0].Num)>>shift))
		}
	case formWide:
		for _, s := range seps {
			dst = binary.LittleEndian.AppendUint64(dst, s.Num)
		}
	case formText:
		end := len(seps[0].Text)
		dst = binary.LittleEndian.AppendUint16(dst, uint16(end))
		for _, s := range seps[1:] {
			end += len(s.Text) - prefix
			dst = binary.LittleEndian.AppendUint16(dst, uint16(end))
		}
		if n > 1 {
			dst = append(dst, seps[1].Text[:prefix]...)
		}
		dst = append(dst, seps[0].Text...)
		for _, s := range seps[1:] {
			dst = append(dst, s.Text[prefix:]...)
		}
	}
	return dst
}
