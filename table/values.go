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

// bits returns the length of the column, row list included.
func (d desc) bits(rows int) int {
	w := &levelBits[d.form()]
	n := rows * w[0]
	if d.sparse() {
		n = int(d>>laneShift) * (rowBits + w[0])
	}
	return n + int(d>>24&0xff)*w[1] + int(d>>32&0xff)*w[2] + int(d>>40&0xff)*w[3] + int(d>>48&0xff)*w[4] + d.deepest()*w[5]
}

// deepest returns the count of level 5, which a sparse column does not have.
func (d desc) deepest() int {
	if d.sparse() {
		return 0
	}
	return int(d >> laneShift)
}

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
func listed(b []byte, p, m, row int) (i int, ok bool) {
	for i = range m {
		if r := int(narrow(b, p+i*rowBits, rowBits)); r >= row {
			return i, r == row
		}
	}
	return m, false
}

// find returns the lane of row in the column d that begins at bit p of b. An
// absent value is a lane with symbol 0 in a dense column, and missing in a sparse
// one.
func (d desc) find(b []byte, p, rows, row int) lane {
	i, n := row, rows
	if d.sparse() {
		n = int(d >> laneShift)
		var ok bool
		if i, ok = listed(b, p, n, row); !ok {
			return lane{pos: p, row: row, missing: true}
		}
		p += n * rowBits
	}
	w := &levelBits[d.form()]
	counts := uint64(d) >> countShift
	for k := 0; ; k++ {
		width := w[k&7]
		at := p + i*width
		if width == 64 {
			return lane{pos: at, width: width, sym: word(b, at), depth: k, level: p, lanes: n, row: i}
		}
		sym := narrow(b, at, width)
		if sym != mask(width) {
			return lane{pos: at, width: width, sym: sym, depth: k, level: p, lanes: n, row: i}
		}
		i = countEscapes(b, p, width, i)
		p += n * width
		n = int(counts & 0xff)
		counts >>= 8
	}
}
