package table

import (
	"fmt"
	"slices"
)

// piece is a page to be: rows lo..hi-1 of the rows being stored.
type piece struct {
	sep    Key
	lo, hi int
}

// limitFor is the size above which a page is split: pages of many columns may be
// larger, since each column costs a descriptor.
func (t *Table) limitFor(h header) int {
	limit := t.limits.pageBytes
	if h.text() {
		limit += limit / 2
	}
	return max(limit, min(64*h.cols(), 32<<10))
}

// growLimit is the size up to which the values of a page may grow: a full page
// has room for that.
func (t *Table) growLimit(h header) int { return t.limitFor(h) * 3 / 2 }

// replace puts the rows r in place of those of the page at, which is in memory.
// Inserted is the row that is new, or -1. The page may be split, merged with a
// neighbour, or go.
func (t *Table) replace(at place, r *rows, inserted int) {
	c := t.chunkAt(at)
	if r.n == 0 {
		t.setRows(at, 0)
		t.removePage(at)
		return
	}
	sep := c.sep(at.page)
	var h header
	var ok bool
	t.pool.page, h, ok = r.plan(t.pool.page, 0, r.n, sep)
	limit := t.limitFor(h)
	if inserted < 0 {
		limit = t.growLimit(h)
	}
	if ok && (h.bytes() <= limit || r.n == 1) {
		b, n, _ := r.pack(t.pool.page, 0, r.n, sep)
		t.pool.page = b
		t.setRows(at, r.n)
		t.overwrite(at, b[:n])
		if n < t.limitFor(h)/4 {
			t.merge(at, n, t.limitFor(h)*5/8)
		}
		return
	}
	t.putPieces(at, r, t.split(nil, r, piece{sep: sep, hi: r.n}, inserted, t.isLast(at)))
}

// overwrite stores b as the page at, which is in memory.
func (t *Table) overwrite(at place, b page) {
	c := t.chunkAt(at)
	old := c.ref(at.page)
	h := page(t.pool.slot(old)).header()
	marks := h&pageFlushing | pageDirty | pageHot
	b.setHeader(b.header()&^pageMarks | marks)
	c.setMarks(c.marks() | chunkHasDirty)
	t.forget(old, h)
	if assertions {
		t.assertPage(at, b)
	}
	if classOf(len(b)) == int(old>>24) {
		copy(t.pool.slot(old), b)
		t.remember(old)
		return
	}
	fresh := t.pool.alloc(len(b), pageOwner(t.chunkID(at), at.page))
	copy(t.pool.slot(fresh), b)
	t.chunkAt(at).setRef(at.page, fresh)
	t.remember(fresh)
	t.pool.release(old)
}

// assertPage panics unless b, with marks, is a page that may stand at at. It has
// no upper bound while its neighbour is merged into it.
func (t *Table) assertPage(at place, b page) {
	stored := slices.Clone(b)
	stored.setHeader(stored.header() &^ pageMarks)
	rows, err := CheckPage(AppendName(nil, t.chunkAt(at).sep(at.page)), nil, stored)
	if err != nil || rows != t.chunkAt(at).rows(at.page) {
		panic(fmt.Sprintf("table: wrote a bad page: %d rows, %v", rows, err))
	}
}

// noteShape notes how much of an integer page is keys, for touchAhead.
func (t *Table) noteShape(h header) {
	if !h.text() {
		t.keysShare = uint8(min(255, h.columnsAt()<<8/h.length()))
	}
}

// remember and forget keep the figures of a changed page in memory.
func (t *Table) remember(r ref) {
	t.residentBytes += int64(slotBytes(r))
	t.dirtyBytes += int64(slotBytes(r))
}

func (t *Table) forget(r ref, h header) {
	t.residentBytes -= int64(slotBytes(r))
	if h&(pageDirty|pageFlushing) != 0 {
		t.dirtyBytes -= int64(slotBytes(r))
	}
}

// setRows notes that the page at has n rows.
func (t *Table) setRows(at place, n int) {
	c := t.chunkAt(at)
	if d := n - c.rows(at.page); d != 0 {
		t.rows += int64(d)
		c.setRows(at.page, n)
		c.setMarks(c.marks() | chunkDirty)
	}
}

// isLast tells whether at is the last page of its tree.
func (t *Table) isLast(at place) bool {
	_, ok := t.next(at)
	return !ok
}

// split cuts p until every piece is a page, appending to dst.
func (t *Table) split(dst []piece, r *rows, p piece, inserted int, last bool) []piece {
	mid := (p.lo + p.hi) / 2
	// Rows that come in order leave full pages behind; at the end of the tree a
	// little disorder is allowed for.
	switch n := p.hi - p.lo; {
	case inserted < 0:
	case inserted == p.hi-1:
		mid = inserted
	case inserted == p.lo:
		mid = p.lo + 1
	case last && inserted-p.lo >= n-n/16:
		mid = p.hi - n/16
	}
	for _, half := range []piece{{sep: p.sep, lo: p.lo, hi: mid}, {sep: divide(r.key(mid-1), r.key(mid)), lo: mid, hi: p.hi}} {
		var h header
		var ok bool
		t.pool.page, h, ok = r.plan(t.pool.page, half.lo, half.hi, half.sep)
		// A full page whose last rows have grown is not halved for that.
		if ok && h.bytes() <= t.growLimit(h) || half.hi-half.lo == 1 {
			dst = append(dst, half)
		} else {
			dst = t.split(dst, r, half, -1, false)
		}
	}
	return dst
}

// putPieces stores pieces, the first in place of the page at.
func (t *Table) putPieces(at place, r *rows, pieces []piece) {
	id := t.chunkID(at)
	var d directory
	for i, p := range pieces {
		b, n, _ := r.pack(t.pool.page, p.lo, p.hi, p.sep)
		t.pool.page = b
		t.noteShape(b.header())
		if i == 0 {
			t.setRows(at, p.hi-p.lo)
			t.overwrite(at, b[:n])
			d.load(t.pool.chunk(id))
			d.marks |= chunkDirty
			continue
		}
		b.setHeader(b.header() | pageDirty | pageHot)
		fresh := t.pool.alloc(n, pageOwner(id, at.page+i))
		copy(t.pool.slot(fresh), b[:n])
		t.remember(fresh)
		t.rows += int64(p.hi - p.lo)
		t.pages++
		t.resident++
		d.insert(at.page+i, p.sep, fresh, p.hi-p.lo)
	}
	t.putChunk(at, &d)
}

// firstPage makes a chunk and a page in front of all others of k's tree, for a
// row with one cell.
func (t *Table) firstPage(k Key, col Column, v int64) {
	r := newRows(k.IsText)
	defer r.free()
	r.appendKey(k)
	r.column(col).put(0, v)
	b, n, _ := r.pack(t.pool.page, 0, 1, k.lowest())
	t.pool.page = b
	b.setHeader(b.header() | pageDirty | pageHot)
	d := directory{text: k.IsText, marks: chunkDirty | chunkHasDirty}
	d.insert(0, k.lowest(), 0, 1)
	t.newChunk(treeOf(k), 0, d.pack(nil, 0, 1))
	at := place{tree: treeOf(k)}
	fresh := t.pool.alloc(n, pageOwner(t.chunkID(at), 0))
	copy(t.pool.slot(fresh), b[:n])
	t.chunkAt(at).setRef(0, fresh)
	t.remember(fresh)
	t.rows++
	t.pages++
	t.resident++
}

// removePage takes the page at, which is in memory, out of the table.
func (t *Table) removePage(at place) {
	c := t.chunkAt(at)
	old := c.ref(at.page)
	t.remove(c.sep(at.page), false)
	t.forget(old, page(t.pool.slot(old)).header())
	t.pages--
	t.resident--
	c.setRef(at.page, 0)
	t.pool.release(old)
	t.dropEntry(at)
}

// dropEntry takes the entry at, not in memory, out of its chunk, and the chunk
// out of the table when it was the only one. A chunk that loses its first page
// has a new name.
func (t *Table) dropEntry(at place) {
	t.shape++
	c := t.chunkAt(at)
	if at.page == 0 {
		t.trees[at.tree].stale = true
		t.remove(c.sep(0), true)
	}
	if c.entries() > 1 {
		var d directory
		d.load(c)
		d.marks |= chunkDirty
		d.remove(at.page)
		t.putChunk(at, &d)
		return
	}
	id, tr := t.chunkID(at), &t.trees[at.tree]
	tr.chunks = slices.Delete(tr.chunks, at.chunk, at.chunk+1)
	if at.tree == 0 {
		tr.firsts = slices.Delete(tr.firsts, at.chunk, at.chunk+1)
	}
	t.chunkBytes -= int64(slotBytes(t.pool.chunks[id]))
	t.pool.freeChunk(id)
}

// merge joins the page at, of n bytes, with a neighbour of its chunk when that
// is in memory and both make no more than limit bytes.
func (t *Table) merge(at place, n, limit int) {
	c := t.chunkAt(at)
	fits := func(i int) bool {
		if i < 0 || i >= c.entries() || c.ref(i) == 0 || c.rows(i)+c.rows(at.page) > rowsMax {
			return false
		}
		return page(t.pool.slot(c.ref(i))).header().bytes()+n <= limit
	}
	switch {
	case fits(at.page + 1):
	case fits(at.page - 1):
		at.page--
	default:
		return
	}
	r := newRows(at.tree == 1)
	defer r.free()
	r.unpack(page(t.pool.slot(c.ref(at.page))), c.sep(at.page))
	r.unpack(page(t.pool.slot(c.ref(at.page+1))), c.sep(at.page+1))
	b, size, ok := r.pack(t.pool.page, 0, r.n, c.sep(at.page))
	t.pool.page = b
	if !ok || size > t.limitFor(b.header()) {
		return
	}
	t.setRows(at, r.n)
	t.overwrite(at, b[:size])
	at.page++
	t.setRows(at, 0)
	t.removePage(at)
}

// putChunk stores d in place of the chunk at, split when it is too large.
func (t *Table) putChunk(at place, d *directory) {
	t.shape++
	n := len(d.seps)
	cuts := t.cutChunk(nil, d, 0, n, at.page+2 >= n)
	for i := len(cuts) - 1; i > 0; i-- {
		t.newChunk(at.tree, at.chunk+1, d.pack(nil, cuts[i], n))
		n = cuts[i]
	}
	buf := d.pack(nil, 0, n)
	id := t.chunkID(at)
	if at.tree == 0 {
		t.trees[0].firsts[at.chunk] = d.seps[0].Num
	}
	old := t.pool.chunks[id]
	if classOf(len(buf)) == int(old>>24) {
		copy(t.pool.slot(old), buf)
		return
	}
	fresh := t.pool.alloc(len(buf), id|ownerIsChunk)
	copy(t.pool.slot(fresh), buf)
	t.pool.chunks[id] = fresh
	t.chunkBytes += int64(slotBytes(fresh) - slotBytes(old))
	t.pool.release(old)
}

// cutChunk appends where the chunks begin that entries lo..hi-1 make.
func (t *Table) cutChunk(dst []int, d *directory, lo, hi int, atEnd bool) []int {
	n := hi - lo
	if n == 1 || n <= t.limits.chunkPages && d.bytes(lo, hi) <= chunkBytesMax {
		return append(dst, lo)
	}
	// As with pages: entries added at the end leave a full chunk behind.
	mid := (lo + hi) / 2
	if atEnd && n > t.limits.chunkPages {
		mid = lo + t.limits.chunkPages
	}
	return t.cutChunk(t.cutChunk(dst, d, lo, mid, false), d, mid, hi, atEnd)
}

// newChunk puts the chunk c, which has no slot yet, into a tree before chunk i.
func (t *Table) newChunk(tree, i int, c chunk) {
	t.shape++
	id := t.pool.newChunk(c)
	t.chunkBytes += int64(slotBytes(t.pool.chunks[id]))
	tr := &t.trees[tree]
	tr.chunks = slices.Insert(tr.chunks, i, id)
	if tree == 0 {
		tr.firsts = slices.Insert(tr.firsts, i, c.sep(0).Num)
	} else {
		tr.stale = true
	}
}
