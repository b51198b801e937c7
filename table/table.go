// Package table holds the rows of one namespace in one partition: an ordered map
// from keys to cells of signed 64-bit values, packed to a few bytes a row.
//
// Rows lie in pages of about a kilobyte, pages in chunks of up to 128. The
// chunks, the directory, are always in memory; a page is in memory, clean or
// changed, or only in the page store, from where it is read when asked for.
// Nothing here writes to disk: Collect hands out what changed.
//
// The package does no locking: a Pool and all its tables belong to one owner at
// a time. It is not a store of its own and knows no names of counters, bounds or
// expiry.
package table

import (
	"fmt"
	"math/bits"

	"github.com/tally-counter/tally/counter"
)

// Loader reads the page named sep from the page store, appending it to dst. Sep
// is valid during the call.
type Loader interface {
	LoadPage(sep, dst []byte) ([]byte, error)
}

// Table is an ordered map of rows. It must not be copied.
//
// Invariants: chunks and separators ascend; every row's key is at or above its
// page's separator and below the next page's; no page in memory is without rows
// and no row without cells; a page not in memory is in the page store as it was
// last collected.
type Table struct {
	pool   *Pool
	loader Loader
	trees  [2]tree // integers, texts
	hand   place   // where Evict goes on

	rows          int64
	pages         int
	resident      int
	residentBytes int64
	dirtyBytes    int64
	chunkBytes    int64
	shape         uint64 // counts changes of the directory: a place is valid while it stays
	keysShare     uint8  // of a page lately written, in 256ths: header, descriptors and keys
	removed       []removal
	unsorted      bool // removed was appended to
	limits        limits
}

// tree is the list of chunks of one kind of key.
type tree struct {
	chunks []uint32 // ids
	firsts []uint64 // integers: first separators; texts: see readFirsts
	prefix string
	stale  bool // texts: firsts and prefix must be read again
}

// place is a page of a table.
type place struct {
	tree, chunk, page int
}

// limits of pages and chunks; tests make them small.
type limits struct {
	pageBytes  int // integer pages; text pages may have half as much again
	chunkPages int
}

const pageBytesMax = 1024 - ownerBytes

// New returns an empty table whose slots come from pool and whose pages l reads.
func New(pool *Pool, l Loader) *Table {
	return &Table{pool: pool, loader: l, limits: limits{pageBytesMax, chunkPages}}
}

// Close frees all slots of the table; it holds nothing afterwards. What the page
// store has of it is for the caller to remove.
func (t *Table) Close() {
	for i := range t.trees {
		for _, id := range t.trees[i].chunks {
			for e := range t.pool.chunk(id).entries() {
				if c := t.pool.chunk(id); c.ref(e) != 0 {
					r := c.ref(e)
					c.setRef(e, 0)
					t.pool.release(r)
				}
			}
			t.pool.freeChunk(id)
		}
	}
	*t = Table{pool: t.pool, loader: t.loader, limits: t.limits}
}

// Rows is the number of rows, in memory or not.
func (t *Table) Rows() int64 { return t.rows }

// ResidentBytes is the memory that pages take.
func (t *Table) ResidentBytes() int64 { return t.residentBytes }

// DirtyBytes is the memory of pages that the page store does not have yet: the
// changed ones and those on their way.
func (t *Table) DirtyBytes() int64 { return t.dirtyBytes }

// Pages returns how many pages are in memory and how many there are.
func (t *Table) Pages() (resident, total int) { return t.resident, t.pages }

// DirectoryBytes is the memory that the directory takes.
func (t *Table) DirectoryBytes() int64 {
	n := t.chunkBytes
	for i := range t.trees {
		n += int64(4*cap(t.trees[i].chunks) + 8*cap(t.trees[i].firsts))
	}
	return n
}

func treeOf(k Key) int {
	if k.IsText {
		return 1
	}
	return 0
}

// findChunk returns the last chunk whose first separator is not above k, -1 when
// there is none.
func (t *Table) findChunk(k Key) int {
	if k.IsText {
		return t.findText(k.Text)
	}
	return findFirst(t.trees[0].firsts, k.Num)
}

func findFirst(firsts []uint64, n uint64) int {
	if len(firsts) == 0 || firsts[0] > n {
		return -1
	}
	lo, size := 0, len(firsts)
	for size > 1 {
		half := size >> 1
		_, below := bits.Sub64(n, firsts[lo+half], 0)
		lo += half & (int(below) - 1)
		size -= half
	}
	return lo
}

// locate returns the page that k belongs to; ok is false when there is none.
func (t *Table) locate(k Key) (at place, ok bool) {
	at.tree = treeOf(k)
	at.chunk = t.findChunk(k)
	if at.chunk < 0 {
		return at, false
	}
	at.page = t.chunkAt(at).find(k)
	return at, true
}

func (t *Table) chunkID(at place) uint32 { return t.trees[at.tree].chunks[at.chunk] }

func (t *Table) chunkAt(at place) chunk { return t.pool.chunk(t.chunkID(at)) }

// memAt is the page at, which is in memory. Valid until the pool is changed.
func (t *Table) memAt(at place) mem {
	p := t.pool
	return p.mem(p.mem(p.chunks[t.chunkID(at)]).refNum(at.page))
}

// next returns the page after at; ok is false when at is the last of its tree.
func (t *Table) next(at place) (_ place, ok bool) {
	if at.page+1 < t.chunkAt(at).entries() {
		at.page++
		return at, true
	}
	at.chunk, at.page = at.chunk+1, 0
	return at, at.chunk < len(t.trees[at.tree].chunks)
}

// upper returns the separator of the page after at; ok is false when there is none.
func (t *Table) upper(at place) (k Key, ok bool) {
	if at, ok = t.next(at); !ok {
		return k, false
	}
	return t.chunkAt(at).sep(at.page), true
}

// open returns the page at, from the page store when it is not in memory. It is
// valid until the table or its pool is changed.
func (t *Table) open(at place) (page, error) {
	r := t.chunkAt(at).ref(at.page)
	if r == 0 {
		var err error
		if r, err = t.fetch(at); err != nil {
			return nil, err
		}
	}
	return page(t.pool.slot(r)), nil
}

// fetch brings a page into memory.
func (t *Table) fetch(at place) (ref, error) {
	sep := t.chunkAt(at).sep(at.page)
	name := AppendName(make([]byte, 0, 64), sep)
	if t.loader == nil {
		return 0, fmt.Errorf("table: page %s is not in memory and there is no page store: %w", sep, counter.ErrCorrupt)
	}
	data, err := t.loader.LoadPage(name, t.pool.page[:0])
	if err != nil {
		return 0, fmt.Errorf("table: page %s cannot be read: %w", sep, err)
	}
	t.pool.page = data
	var upper []byte
	if k, ok := t.upper(at); ok {
		upper = AppendName(nil, k)
	}
	rows, err := CheckPage(name, upper, data)
	if err != nil {
		return 0, err
	}
	if want := t.chunkAt(at).rows(at.page); rows != want {
		return 0, fmt.Errorf("table: page %s has %d rows, its chunk says %d: %w", sep, rows, want, counter.ErrCorrupt)
	}
	r := t.pool.alloc(len(data), pageOwner(t.chunkID(at), at.page))
	b := page(t.pool.slot(r))
	copy(b, data)
	t.noteShape(b.header())
	b.setHeader(b.header() | pageHot)
	t.chunkAt(at).setRef(at.page, r)
	t.resident++
	t.residentBytes += int64(slotBytes(r))
	return r, nil
}

// touch marks the page b at place at as changed.
func (t *Table) touch(at place, b mem) {
	h := b.header()
	if h&(pageDirty|pageHot) == pageDirty|pageHot {
		return
	}
	b.setHeader(h | pageDirty | pageHot)
	if h&pageDirty != 0 {
		return
	}
	c := t.chunkAt(at)
	if h&pageFlushing == 0 {
		t.dirtyBytes += int64(slotBytes(c.ref(at.page)))
	}
	c.setMarks(c.marks() | chunkHasDirty)
}
