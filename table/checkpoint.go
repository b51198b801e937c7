package table

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tally-counter/tally/counter"
)

// Change is one page or chunk record for the page store: Data under Name, or,
// with Data nil, Name removed. Both are valid during the call only.
type Change struct{ Name, Data []byte }

// removal is a page or chunk that went and that the page store may still have.
type removal struct {
	name     string
	chunk    bool
	flushing bool
}

// scanCost is what looking at an unchanged page counts for in Collect's maxBytes.
const scanCost = 32

func (t *Table) remove(sep Key, chunk bool) {
	t.removed = append(t.removed, removal{name: string(AppendName(nil, sep)), chunk: chunk})
	t.unsorted = true
}

// Collect captures what changed in a range of keys that begins at from, a name
// (nil: the first), and marks it flushing: the changed pages of whole chunks, the
// names that went, and the records of the chunks that changed. It ends after the
// chunk that brings it to about maxBytes, and returns the name to go on from, nil
// at the end. The range is captured at one moment, the ranges of one pass meet
// and do not overlap, whatever happens to chunks between the calls. Only a row
// that came into being since the pass began may be in none of them, when the
// chunk it would have belonged to has gone; the journal has it. Pages and chunks
// are each given in ascending order of their names.
//
// The pass ends with Flushed, which must also follow an error: the first that
// page or chunk returns.
func (t *Table) Collect(from []byte, maxBytes int, page, chunk func(Change) error) (next []byte, err error) {
	at, err := t.chunkFrom(from)
	if err != nil {
		return nil, err
	}
	t.sortRemoved()
	var out collected
	for size := 0; at.chunk < len(t.trees[at.tree].chunks) || at.tree == 0; {
		if at.chunk == len(t.trees[at.tree].chunks) {
			at = place{tree: at.tree + 1}
			continue
		}
		if size >= maxBytes {
			next = AppendName(nil, t.chunkAt(at).sep(0))
			break
		}
		size += t.collectChunk(at, &out)
		at.chunk++
	}
	t.collectRemoved(from, next, &out)
	return next, out.emit(page, chunk)
}

// collected is what one call of Collect captured: references into buf.
type collected struct {
	buf           []byte
	pages, chunks []captured
}

type captured struct {
	name, data span
	gone       bool
}

func (o *collected) add(list *[]captured, name, data []byte) {
	var c captured
	c.name.from = len(o.buf)
	o.buf = append(o.buf, name...)
	c.name.to = len(o.buf)
	c.gone = data == nil
	c.data.from = len(o.buf)
	o.buf = append(o.buf, data...)
	c.data.to = len(o.buf)
	*list = append(*list, c)
}

func (o *collected) name(c captured) []byte { return o.buf[c.name.from:c.name.to] }

func (o *collected) sort(list []captured) {
	slices.SortStableFunc(list, func(a, b captured) int { return bytes.Compare(o.name(a), o.name(b)) })
}

func (o *collected) emit(page, chunk func(Change) error) error {
	for _, l := range []struct {
		list []captured
		fn   func(Change) error
	}{{o.pages, page}, {o.chunks, chunk}} {
		o.sort(l.list)
		for _, c := range l.list {
			change := Change{Name: o.name(c)}
			if !c.gone {
				change.Data = o.buf[c.data.from:c.data.to]
			}
			if err := l.fn(change); err != nil {
				return err
			}
		}
	}
	return nil
}

// chunkFrom returns the first chunk whose first separator is not below the name
// from.
func (t *Table) chunkFrom(from []byte) (place, error) {
	if from == nil {
		return place{}, nil
	}
	k, err := ParseName(from)
	if err != nil {
		return place{}, err
	}
	at := place{tree: treeOf(k), chunk: t.findChunk(k)}
	if at.chunk < 0 || t.chunkAt(at).sep(0).Compare(k) < 0 {
		at.chunk++
	}
	return at, nil
}

// collectChunk captures a chunk and returns about how many bytes that took.
func (t *Table) collectChunk(at place, out *collected) (size int) {
	before := len(out.buf)
	c := t.chunkAt(at)
	m := c.marks()
	var name []byte
	if m&chunkHasDirty != 0 {
		for at.page = range c.entries() {
			r := c.ref(at.page)
			if r == 0 {
				continue
			}
			b := page(t.pool.slot(r))
			h := b.header()
			if h&pageDirty == 0 {
				continue
			}
			stored := h &^ pageMarks
			b.setHeader(stored)
			name = AppendName(name[:0], c.sep(at.page))
			out.add(&out.pages, name, b[:h.bytes()])
			b.setHeader(stored | h&pageHot | pageFlushing)
		}
		m = m&^chunkHasDirty | chunkHasFlushed
		size = scanCost * c.entries()
	}
	if m&chunkDirty != 0 {
		name = AppendName(name[:0], c.sep(0))
		out.add(&out.chunks, name, c.appendRecord(nil))
		m = m&^chunkDirty | chunkFlushing
	}
	c.setMarks(m)
	return size + scanCost + len(out.buf) - before
}

func (t *Table) sortRemoved() {
	if t.unsorted {
		slices.SortFunc(t.removed, func(a, b removal) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
		t.unsorted = false
	}
}

// collectRemoved captures the names that went from the range from..next, nil:
// without bound. A name that was taken again since is not among them.
func (t *Table) collectRemoved(from, next []byte, out *collected) {
	lo, _ := slices.BinarySearchFunc(t.removed, string(from), func(r removal, name string) int { return bytes.Compare([]byte(r.name), []byte(name)) })
	var lastPage, lastChunk string
	for i := lo; i < len(t.removed); i++ {
		r := &t.removed[i]
		if next != nil && r.name >= string(next) {
			break
		}
		if r.flushing {
			continue
		}
		r.flushing = true
		last := &lastPage
		if r.chunk {
			last = &lastChunk
		}
		if *last == r.name || t.exists(r.name, r.chunk) {
			continue
		}
		*last = r.name
		if r.chunk {
			out.add(&out.chunks, []byte(r.name), nil)
		} else {
			out.add(&out.pages, []byte(r.name), nil)
		}
	}
}

// exists tells whether there is a page, or a chunk, of that name.
func (t *Table) exists(name string, chunk bool) bool {
	k, err := ParseName([]byte(name))
	if err != nil {
		return false
	}
	at, ok := t.locate(k)
	return ok && t.chunkAt(at).sep(at.page) == k && (!chunk || at.page == 0)
}

// Flushed ends a pass of Collect. Ok says that everything collected is in the
// page store; if not, it counts as changed again.
func (t *Table) Flushed(ok bool) {
	for i := range t.trees {
		for _, id := range t.trees[i].chunks {
			t.flushedChunk(t.pool.chunk(id), ok)
		}
	}
	if ok {
		t.removed = slices.DeleteFunc(t.removed, func(r removal) bool { return r.flushing })
		if len(t.removed) == 0 {
			t.removed = nil
		}
		return
	}
	for i := range t.removed {
		t.removed[i].flushing = false
	}
}

func (t *Table) flushedChunk(c chunk, ok bool) {
	m := c.marks()
	if m&(chunkFlushing|chunkHasFlushed) == 0 {
		return
	}
	if !ok {
		if m&chunkFlushing != 0 {
			m |= chunkDirty
		}
		if m&chunkHasFlushed != 0 {
			m |= chunkHasDirty
		}
	}
	if m&chunkHasFlushed != 0 {
		for i := range c.entries() {
			if r := c.ref(i); r != 0 {
				t.flushedPage(page(t.pool.slot(r)), slotBytes(r), ok)
			}
		}
	}
	c.setMarks(m &^ (chunkFlushing | chunkHasFlushed))
}

func (t *Table) flushedPage(b page, size int, ok bool) {
	h := b.header()
	if h&pageFlushing == 0 {
		return
	}
	h &^= pageFlushing
	if !ok {
		h |= pageDirty
	} else if h&pageDirty == 0 {
		t.dirtyBytes -= int64(size)
	}
	b.setHeader(h)
}

// A chunk record lists the pages of a chunk:
//
//	version 1 | entries less 1 | rows of each entry, 8 bits each
//	for each entry but the first, whose separator is the record's name:
//	integers: uvarint of the distance from the separator before it
//	texts: uvarint bytes shared with the separator before it, uvarint own bytes, own bytes
const recordVersion = 1

func (c chunk) appendRecord(dst []byte) []byte {
	dst = append(dst, recordVersion, byte(c.entries()-1))
	for i := range c.entries() {
		dst = append(dst, byte(c.rows(i)))
	}
	last := c.sep(0)
	for i := 1; i < c.entries(); i++ {
		k := c.sep(i)
		if k.IsText {
			shared := commonPrefix([]byte(last.Text), []byte(k.Text))
			dst = binary.AppendUvarint(dst, uint64(shared))
			dst = binary.AppendUvarint(dst, uint64(len(k.Text)-shared))
			dst = append(dst, k.Text[shared:]...)
		} else {
			dst = binary.AppendUvarint(dst, k.Num-last.Num)
		}
		last = k
	}
	return dst
}

// parse reads a chunk record into d.
func (d *directory) parse(name, data []byte) error {
	bad := func(what string) error {
		return fmt.Errorf("table: chunk record %q: %s: %w (restore a backup)", name, what, counter.ErrCorrupt)
	}
	sep, err := ParseName(name)
	if err != nil {
		return err
	}
	if len(data) < 2 || data[0] != recordVersion {
		return bad("it is cut short or of a version this program does not know")
	}
	n := int(data[1]) + 1
	if n > chunkPages {
		return bad(fmt.Sprintf("it lists %d pages, the limit is %d", n, chunkPages))
	}
	if len(data) < 2+n {
		return bad("it is cut short")
	}
	*d = directory{text: sep.IsText, rows: slices.Clone(data[2 : 2+n]), refs: make([]ref, n)}
	if slices.Contains(d.rows, 0) {
		return bad("a page has no rows")
	}
	data = data[2+n:]
	uvarint := func() (uint64, bool) {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			return 0, false
		}
		data = data[n:]
		return v, true
	}
	last := sep.clone()
	d.seps = append(d.seps, last)
	for len(d.seps) < n {
		a, ok := uvarint()
		k := Key{Num: last.Num + a, IsText: d.text}
		if ok && d.text {
			var own uint64
			own, ok = uvarint()
			ok = ok && a <= uint64(len(last.Text)) && own <= uint64(len(data)) && a+own <= counter.IDBytesMax
			if ok {
				k = Key{Text: last.Text[:a] + string(data[:own]), IsText: true}
				data = data[own:]
			}
		}
		if !ok {
			return bad("it is cut short")
		}
		if k.Compare(last) <= 0 {
			return bad("separators do not ascend")
		}
		d.seps = append(d.seps, k)
		last = k
	}
	if len(data) > 0 {
		return bad("bytes follow its end")
	}
	return nil
}

// LoadChunk adds a chunk as the page store has it, when the table is opened. Its
// pages stay in the page store until asked for. Records must come in ascending
// order; errors wrap counter.ErrCorrupt.
func (t *Table) LoadChunk(name, data []byte) error {
	var d directory
	if err := d.parse(name, data); err != nil {
		return err
	}
	tree := treeOf(d.seps[0])
	n := len(t.trees[tree].chunks)
	if n > 0 {
		last := t.pool.chunk(t.trees[tree].chunks[n-1])
		if last.sep(last.entries()-1).Compare(d.seps[0]) >= 0 {
			return fmt.Errorf("table: chunk record %q overlaps the one before it: %w (restore a backup)", name, counter.ErrCorrupt)
		}
	}
	t.newChunk(tree, n, d.pack(nil, 0, len(d.seps)))
	t.pages += len(d.seps)
	for _, r := range d.rows {
		t.rows += int64(r)
	}
	return nil
}
