package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// Pool is the slot memory of one partition, shared by its tables. It lies
// outside the Go heap: the garbage collector never looks at it.
//
// A slot belongs to a class, and the slots of a class stand side by side in one
// region without holes: freeing a slot moves the last one of its class into the
// hole. So memory is slots in use, plus less than a system page per class, plus
// the rounding of a page's size to its class. The last four bytes of a slot
// name its owner, whose reference is mended when the slot moves:
//
//	page slot:  page | unused | chunk id, 24 bits | place in the chunk when last noted, 7 bits | 0
//	chunk slot: chunk | unused | chunk id, 24 bits | 7 bits zero | 1
//
// The place may be out of date, when pages before it were split or went: the
// search for the reference begins there.
//
// A Pool is not safe for concurrent use.
type Pool struct {
	classes [classCount]region
	base    [classCount]unsafe.Pointer // where the memory of each class begins
	chunks  []uint32                   // chunk id -> its slot; 0: free
	free    []uint32                   // unused chunk ids
	touched int64
	page    []byte  // scratch: a page on its way in or out
	splice  splice  // scratch
	entries []byte  // scratch: text keys on their way in
	probes  []probe // scratch
	// touchSink keeps loads that only touch memory from being optimised away.
	touchSink byte
}

// region holds the slots of one class.
type region struct {
	mem     []byte
	slots   int
	touched int // bytes from the start that the system has given
}

// A reference names a slot: class in the high 8 bits, index in the low 24. Class
// 0 is not used, so 0 is no slot.
type ref = uint32

const (
	ownerBytes   = 4
	ownerIsChunk = 1 << 31
	ownerID      = 1<<24 - 1
	ownerShift   = 24 // of the place
	slotStep     = 16
	stepClasses  = 96 // classes 1..96 have slots of 16, 32, … 1536 bytes
	classCount   = 128
	slotsMax     = 1 << 24
	systemPage   = 4096
	readAhead    = 128 // a region is mapped this far behind its last slot
	hugeRegion   = 64 << 20
)

// classBytes[c] is the slot size of class c: steps of 16 bytes up to 1.5 KiB,
// then a quarter more of the last octave's start each.
var classBytes = func() (t [classCount]int) {
	for c := range t {
		if c <= stepClasses {
			t[c] = c * slotStep
			continue
		}
		octave, part := (c-stepClasses-1)/4, (c-stepClasses-1)%4+1
		t[c] = (stepClasses * slotStep << octave) * (4 + part) / 4
	}
	return t
}()

// classOf returns the class whose slots hold size bytes and the owner.
func classOf(size int) int {
	size += ownerBytes
	if size <= stepClasses*slotStep {
		return (size + slotStep - 1) / slotStep
	}
	c := stepClasses + 1
	for classBytes[c] < size {
		c++
	}
	return c
}

// NewPool returns a pool that holds nothing and has taken no memory.
func NewPool() *Pool { return &Pool{chunks: make([]uint32, 1)} }

// Bytes is the memory taken from the system for slots.
func (p *Pool) Bytes() int64 { return p.touched }

// Close gives all memory back. No table of the pool may be used afterwards.
func (p *Pool) Close() error {
	var errs []error
	for i := range p.classes {
		if m := p.classes[i].mem; m != nil {
			errs = append(errs, unmapMemory(m))
		}
	}
	*p = Pool{}
	return errors.Join(errs...)
}

// slot returns the memory of the slot r and readAhead bytes behind it, which may
// be read. Valid until the next alloc or release.
func (p *Pool) slot(r ref) []byte {
	return unsafe.Slice((*byte)(p.mem(r).p), slotBytes(r)+readAhead)
}

// mem is slot without the length.
func (p *Pool) mem(r ref) mem {
	c := r >> 24 & (classCount - 1)
	return mem{unsafe.Add(p.base[c], int(r&(slotsMax-1))*classBytes[c])}
}

func slotBytes(r ref) int { return classBytes[r>>24&(classCount-1)] }

// alloc returns a new slot for size bytes. Running out of memory is a panic, as
// it is anywhere in Go.
func (p *Pool) alloc(size int, owner uint32) ref {
	c := classOf(size)
	g := &p.classes[c]
	if g.slots == slotsMax {
		panic("table: a class of slots is full; use more partitions")
	}
	end := (g.slots + 1) * classBytes[c]
	if end+readAhead > len(g.mem) {
		p.grow(c, end+readAhead)
	}
	if end+padBytes > g.touched {
		p.touch(g, (end+padBytes+systemPage-1)&^(systemPage-1))
	}
	r := ref(c<<24 | g.slots)
	g.slots++
	p.setOwner(r, owner)
	return r
}

func (p *Pool) touch(g *region, n int) {
	p.touched += int64(n - g.touched)
	g.touched = n
}

func (p *Pool) grow(c, need int) {
	var err error
	g := &p.classes[c]
	size := max(64<<10, 2*len(g.mem))
	for size < need {
		size *= 2
	}
	if g.mem == nil {
		g.mem, err = mapMemory(size)
	} else {
		g.mem, err = growMemory(g.mem, size)
	}
	if err != nil {
		panic(fmt.Sprintf("table: the system gives no memory for slots (%d bytes): %v", size, err))
	}
	p.base[c] = unsafe.Pointer(unsafe.SliceData(g.mem))
	if size >= hugeRegion {
		hugeMemory(g.mem)
	}
}

func (p *Pool) owner(r ref) uint32 { return p.mem(r).load32(slotBytes(r) - ownerBytes) }

func (p *Pool) setOwner(r ref, owner uint32) {
	binary.LittleEndian.PutUint32(p.slot(r)[slotBytes(r)-ownerBytes:], owner)
}

// release frees the slot r. The last slot of its class takes its place, so the
// owner of every slot must be able to find its reference now.
func (p *Pool) release(r ref) {
	c := int(r >> 24)
	g := &p.classes[c]
	g.slots--
	if last := ref(c<<24 | g.slots); last != r {
		copy(p.slot(r)[:classBytes[c]], p.slot(last))
		p.moved(last, r)
	}
	// Some slack, so that a class that breathes does not ask the system each time.
	if keep := g.keep(classBytes[c]); g.touched-keep > 2*systemPage+keep/16 {
		p.trimRegion(g, keep)
	}
}

// keep is the size of the region's system pages that are in use.
func (g *region) keep(slot int) int {
	if g.slots == 0 {
		return 0
	}
	return (g.slots*slot + padBytes + systemPage - 1) &^ (systemPage - 1)
}

func (p *Pool) trimRegion(g *region, keep int) {
	// Failing to give memory back loses nothing but the memory.
	if g.touched > keep && returnMemory(g.mem[keep:g.touched]) == nil {
		p.touch(g, keep)
	}
}

// Trim gives all memory back that no slot is in, down to a system page a class.
// It is worth calling now and then: after a checkpoint, after a load.
func (p *Pool) Trim() {
	for c := range p.classes {
		p.trimRegion(&p.classes[c], p.classes[c].keep(classBytes[c]))
	}
}

// moved tells the owner of the slot now at to that it was at from.
func (p *Pool) moved(from, to ref) {
	owner := p.owner(to)
	if owner&ownerIsChunk != 0 {
		p.chunks[owner&ownerID] = to
		return
	}
	p.chunk(owner&ownerID).replaceRef(int(owner>>ownerShift), from, to)
}

// pageOwner is the owner of page i of chunk id; while a chunk waits to be split,
// i may be too high for the field.
func pageOwner(id uint32, i int) uint32 { return id | uint32(min(i, chunkPages-1))<<ownerShift }

// newChunk stores c, exactly as long as the chunk, as a chunk and returns its id. The pages in memory that it
// refers to are its own from now on.
func (p *Pool) newChunk(c chunk) uint32 {
	var id uint32
	if n := len(p.free); n > 0 {
		id, p.free = p.free[n-1], p.free[:n-1]
	} else {
		if id = uint32(len(p.chunks)); id > ownerID {
			panic("table: a pool is full of chunks; use more partitions")
		}
		p.chunks = append(p.chunks, 0)
	}
	for i := range c.entries() {
		if r := c.ref(i); r != 0 {
			p.setOwner(r, pageOwner(id, i))
		}
	}
	r := p.alloc(len(c), id|ownerIsChunk)
	copy(p.slot(r), c)
	p.chunks[id] = r
	return id
}

func (p *Pool) freeChunk(id uint32) {
	r := p.chunks[id]
	p.chunks[id] = 0
	p.free = append(p.free, id)
	p.release(r)
}

func (p *Pool) chunk(id uint32) chunk { return chunk(p.slot(p.chunks[id])) }
