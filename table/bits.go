package table

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Bit strings are little-endian: bit p is bit p%8 of byte p/8. Every function
// here may read (and write back unchanged) up to padBytes beyond the last bit.
const padBytes = 40

// mem is memory without a length: with bounds checks, and each step parsing the
// header again, an add took 1,834 instructions, without 931 (callgrind). Whoever
// holds one knows that what it reads is a page that was checked, or a chunk, with
// padBytes behind it. Functions that take slices check under the tag assert.
type mem struct{ p unsafe.Pointer }

func memOf(b []byte) mem { return mem{unsafe.Pointer(unsafe.SliceData(b))} }

// load reads the 64 bits from byte i on.
func (m mem) load(i int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(m.p, i))[:])
}

func (m mem) store(i int, v uint64) {
	binary.LittleEndian.PutUint64((*[8]byte)(unsafe.Add(m.p, i))[:], v)
}

func (m mem) load32(i int) uint32 {
	return binary.LittleEndian.Uint32((*[4]byte)(unsafe.Add(m.p, i))[:])
}

func (m mem) byte(i int) byte { return *(*byte)(unsafe.Add(m.p, i)) }

// bits reads the 57 or more bits from bit p on; what is above them is undefined.
func (m mem) bits(p int) uint64 { return m.load(p>>3) >> uint(p&7) }

// word reads the 64 bits from bit p on.
func (m mem) word(p int) uint64 {
	i, s := p>>3, uint(p&7)
	return m.load(i)>>s | uint64(m.byte(i+8))<<1<<(63-s)
}

func le64(b []byte, i int) uint64 {
	checkBounds(b, i, 8)
	return memOf(b).load(i)
}

func checkBounds(b []byte, i, n int) {
	if assertions && (i < 0 || i+n > len(b)) {
		panic("table: a bit string ends early")
	}
}

// mask has the low w bits set, w in 0..64.
func mask(w int) uint64 { return 1<<uint(w) - 1 }

// word reads the 64 bits from bit p on.
func word(b []byte, p int) uint64 {
	checkBounds(b, p>>3, 9)
	return memOf(b).word(p)
}

// get reads w bits from bit p on, w in 0..64.
func get(b []byte, p, w int) uint64 { return word(b, p) & mask(w) }

// set writes the low w bits of v at bit p, w in 0..64. Higher bits of v must be 0.
func (m mem) set(p, w int, v uint64) {
	i, s := p>>3, uint(p&7)
	all := mask(w)
	m.store(i, m.load(i)&^(all<<s)|v<<s)
	if int(s)+w > 64 {
		last := (*byte)(unsafe.Add(m.p, i+8))
		*last = *last&^byte(all>>(64-s)) | byte(v>>(64-s))
	}
}

// selectZero returns the place of the k-th zero (from 0) of the bits that begin
// at byte i, counted from there. There must be that many. It reads 48 bytes at a
// time, which is all of most pages' buckets, and picks the word among them
// without branches: they would be guessed wrong half the time, and a wrong guess
// is paid with the whole way of an add up to here. (Measured with the other steps
// of a lookup only: mispredicted branches an add, 9.7 -> 0.6, callgrind.)
func (m mem) selectZero(i, k int) int {
	at := i
	for {
		n0 := bits.OnesCount64(^m.load(at))
		n1 := n0 + bits.OnesCount64(^m.load(at+8))
		n2 := n1 + bits.OnesCount64(^m.load(at+16))
		n3 := n2 + bits.OnesCount64(^m.load(at+24))
		n4 := n3 + bits.OnesCount64(^m.load(at+32))
		// -1 when the zero is before the end of the word.
		in0, in1, in2, in3, in4 := (k-n0)>>63, (k-n1)>>63, (k-n2)>>63, (k-n3)>>63, (k-n4)>>63
		at += 40 + 8*(in0+in1+in2+in3+in4)
		k -= n0&^in0 + (n1-n0)&^in1 + (n2-n1)&^in2 + (n3-n2)&^in3 + (n4-n3)&^in4
		x := ^m.load(at)
		if n := bits.OnesCount64(x); k >= n {
			k -= n
			at += 8
			continue
		}
		return 8*(at-i) + selectWord(x, k)
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
	before := int(s << 8 >> uint(8*n&63) & 0xff)
	return 8*n + int(selectByte[x>>uint(8*n&63)&0xff][(k-before)&7])
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
// on, w in 1, 2, 4, 8, 16, 32. It goes by the bits that one load gives, 56, or
// what whole lanes of them there are.
func (m mem) countEscapes(p, w, n int) (total int) {
	step := 56
	if w > 8 {
		step = 64 - w // 48, 32
	}
	starts := laneStarts[w&63]
	for left := n * w; left > 0; left -= step {
		x := m.bits(p)
		x &= 1<<uint(min(left, step)&63) - 1
		switch w {
		case 32:
			x &= x >> 16
			fallthrough
		case 16:
			x &= x >> 8
			fallthrough
		case 8:
			x &= x >> 4
			fallthrough
		case 4:
			x &= x >> 2
			fallthrough
		case 2:
			x &= x >> 1
		}
		total += bits.OnesCount64(x & starts)
		p += step
	}
	return total
}

// laneStarts[w] has the lowest bit of every lane of w bits set.
var laneStarts = [64]uint64{
	1: 0xffffffffffffffff, 2: 0x5555555555555555, 4: 0x1111111111111111,
	8: bytes01, 16: 0x0001000100010001, 32: 0x0000000100000001,
}
