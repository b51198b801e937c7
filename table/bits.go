package table

import (
	"encoding/binary"
	"math/bits"
)

// Bit strings are little-endian: bit p is bit p%8 of byte p/8. Every function
// here may read (and write back unchanged) up to padBytes beyond the last bit.
const padBytes = 16

func le64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// mask has the low w bits set, w in 0..64.
func mask(w int) uint64 { return 1<<uint(w) - 1 }

// word reads the 64 bits from bit p on.
func word(b []byte, p int) uint64 {
	i, s := p>>3, uint(p&7)
	return le64(b, i)>>s | uint64(b[i+8])<<(64-s)
}

// get reads w bits from bit p on, w in 0..64.
func get(b []byte, p, w int) uint64 { return word(b, p) & mask(w) }

// narrow is get for w in 0..57, with one load.
func narrow(b []byte, p, w int) uint64 { return le64(b, p>>3) >> uint(p&7) & mask(w) }

// set writes the low w bits of v at bit p, w in 0..64. Higher bits of v must be 0.
func set(b []byte, p, w int, v uint64) {
	i, s := p>>3, uint(p&7)
	m := mask(w)
	binary.LittleEndian.PutUint64(b[i:], le64(b, i)&^(m<<s)|v<<s)
	if int(s)+w > 64 {
		b[i+8] = b[i+8]&^byte(m>>(64-s)) | byte(v>>(64-s))
	}
}

// selectZero returns the place of the k-th zero (from 0) of the bits that begin
// at byte i, counted from there. There must be that many.
func selectZero(b []byte, i, k int) int {
	for at := 0; ; at += 64 {
		z := ^le64(b, i+at>>3)
		c := bits.OnesCount64(z)
		if k < c {
			return at + selectWord(z, k)
		}
		k -= c
	}
}

const (
	bytes01 = 0x0101010101010101
	bytes80 = 0x8080808080808080
)

// selectWord returns the place of the k-th one (from 0) of x, k < OnesCount64(x).
//
// Source: Vigna, Broadword implementation of rank/select queries, WEA 2008.
func selectWord(x uint64, k int) int {
	s := x - x>>1&0x5555555555555555
	s = s&0x3333333333333333 + s>>2&0x3333333333333333
	s = (s + s>>4) & 0x0f0f0f0f0f0f0f0f * bytes01 // byte i: ones in bytes 0..i
	n := bits.OnesCount64(((uint64(k)*bytes01 | bytes80) - s) & bytes80)
	before := int(s << 8 >> uint(8*n) & 0xff)
	return 8*n + int(selectByte[x>>uint(8*n)&0xff][k-before])
}

// selectByte[x][k] is the place of the k-th one of the byte x.
var selectByte = func() (t [256][8]uint8) {
	for x := range t {
		k := 0
		for i := range 8 {
			if x>>i&1 == 1 {
				t[x][k] = uint8(i)
				k++
			}
		}
	}
	return t
}()

// countEscapes counts the lanes of all ones among n lanes of w bits from bit p
// on, w in 1, 2, 4, 8, 16, 32.
func countEscapes(b []byte, p, w, n int) int {
	total, left := 0, n*w
	for ; left > 0; left -= 64 {
		x := word(b, p)
		if left < 64 {
			x &= mask(left)
		}
		for s := 1; s < w; s <<= 1 {
			x &= x >> uint(s)
		}
		total += bits.OnesCount64(x & laneStarts[w])
		p += 64
	}
	return total
}

// laneStarts[w] has the lowest bit of every lane of w bits set.
var laneStarts = [33]uint64{
	1: 0xffffffffffffffff, 2: 0x5555555555555555, 4: 0x1111111111111111,
	8: bytes01, 16: 0x0001000100010001, 32: 0x0000000100000001,
}
