package table

import "math"

// A column of a page holds one lane per row (dense), or one per listed row
// (sparse), on the first level. Symbol 0 of a dense lane is "absent". A lane of
// all ones escapes: the value stands on the next, wider level, whose i-th lane
// belongs to the i-th escape. The last level has 64 bits and holds the value as
// it is; the levels before hold v (unsigned form, v >= 1) or zigzag(v)+1 (signed
// form). A value may stand on a wider level than it needs.
//
// A descriptor says how a column is written:
//
//	bits 0..11 column | 12 sparse | 13 signed | 14..16 form | 17..23 zero
//	bits 24+8k, k = 0..4: lanes on level k+1; of a sparse column the last: lanes on level 0
type desc uint64

const (
	descSparse = 1 << 12
	descSigned = 1 << 13
	formShift  = 14
	countShift = 24
	laneShift  = 56
	descZero   = 0x7f << 17
	formCount  = 6
	levelsMax  = 6
	rowBits    = 8 // a row number in the list of a sparse column

	sparseFormMin = 2 // forms below have no room for the count of a sparse column
)

// levelBits[form][level] is the width of a lane; 0: no such level. The second
// index is 8 long so that it can be masked instead of checked.
var levelBits = [8][8]int{
	{1, 4, 8, 16, 32, 64},
	{2, 4, 8, 16, 32, 64},
	{4, 8, 16, 32, 64},
	{8, 16, 32, 64},
	{16, 32, 64},
	{32, 64},
}

func (d desc) col() Column  { return Column(d & 0xfff) }
func (d desc) sparse() bool { return d&descSparse != 0 }
func (d desc) signed() bool { return d&descSigned != 0 }
func (d desc) form() int    { return int(d >> formShift & 7) }

// lanes returns the number of lanes on the first level.
func (d desc) lanes(rows int) int {
	if d.sparse() {
		return int(d >> laneShift)
	}
	return rows
}

// count returns the number of lanes on level 1 or above.
func (d desc) count(level int) int { return int(d >> (countShift + 8*uint(level-1)) & 0xff) }

// bits returns the length of the column, row list included. Every form's levels
// behind the first have 1, 2, 4, 8, 16 times the bits of the second, so that the
// counts, which lie in bytes, are weighed by two multiplications.
func (d desc) bits(rows int) int {
	counts := uint64(d) >> countShift
	first := uint(d.form())
	n := rows << first
	if d.sparse() {
		n = d.lanes(rows) * (rowBits + 1<<first)
		counts &= mask(32)
	}
	const pairs = 0x00ff_00ff_00ff
	sum := counts&pairs*(16|4<<16|1<<32)>>32&0xffff + counts>>8&pairs*(8|2<<16)>>16&0xffff
	return n + int(sum)<<secondLog[first]
}

// secondLog[form] is the log2 of the width of a lane on level 1.
var secondLog = [8]uint8{2, 2, 3, 4, 5, 6}

// symbol returns what stands for v on a level below 64 bits; ok is false when
// nothing does, and symbols that no such level holds are not ok either.
func symbol(v int64, signed bool) (u uint64, ok bool) {
	u = uint64(v)
	if signed {
		u = uint64(v)<<1 ^ uint64(v>>63)
		if u >= math.MaxUint32 {
			return 0, false
		}
		u++
	}
	return u, u-1 < math.MaxUint32-1 // 1 .. 2^32-2
}

// value is the inverse of symbol.
func value(u uint64, signed bool) int64 {
	if signed {
		u--
		return int64(u>>1) ^ -int64(u&1)
	}
	return int64(u)
}

// lane is the place where a value stands in a page, or, missing, where the entry
// of a sparse column would.
type lane struct {
	pos     int // first bit; missing: of the column
	width   int
	sym     uint64
	depth   int // its level, 0 the first
	level   int // first bit of the level
	lanes   int // on the level
	row     int // its number on the level; missing: of the row
	missing bool
}

// present tells whether the lane holds a value.
func (l *lane) present() bool { return l.sym != 0 || l.width == 64 }

func (l *lane) value(signed bool) int64 {
	if l.width == 64 {
		return int64(l.sym)
	}
	return value(l.sym, signed)
}

// holds tells whether the lane can hold v instead, and its symbol.
func (l *lane) holds(v int64, signed bool) (u uint64, ok bool) {
	if l.missing {
		return 0, false
	}
	if l.width == 64 {
		return uint64(v), true
	}
	u, ok = symbol(v, signed)
	return u, ok && u < mask(l.width)
}

// listed returns the place of row in the sorted row list of m entries at bit p,
// or where it would be.
func (m mem) listed(p, n, row int) (i int, ok bool) {
	for i = range n {
		if r := int(m.bits(p+i*rowBits) & mask(rowBits)); r >= row {
			return i, r == row
		}
	}
	return n, false
}

// find returns the lane of row in the column d that begins at bit p of m. An
// absent value is a lane with symbol 0 in a dense column, and missing in a sparse
// one.
func (d desc) find(m mem, p, rows, row int) lane {
	i, n := row, rows
	if d.sparse() {
		n = int(d >> laneShift)
		var ok bool
		if i, ok = m.listed(p, n, row); !ok {
			return lane{pos: p, row: row, missing: true}
		}
		p += n * rowBits
	}
	width := 1 << uint(d.form()&7)
	counts := uint64(d) >> countShift
	for k := 0; ; k++ {
		at := p + i*width
		if width == 64 {
			return lane{pos: at, width: width, sym: m.word(at), depth: k, level: p, lanes: n, row: i}
		}
		all := mask(width)
		sym := m.bits(at) & all
		if sym != all {
			return lane{pos: at, width: width, sym: sym, depth: k, level: p, lanes: n, row: i}
		}
		i = m.countEscapes(p, width, i)
		p += n * width
		n = int(counts & 0xff)
		counts >>= 8
		if width *= 2; width < 4 {
			width = 4 // level 1 of the forms that begin with 1
		}
	}
}
