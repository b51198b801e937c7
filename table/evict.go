package table

// Evict drops pages from memory that the page store has as they are and that
// were not used since it last passed them, until about want bytes are free or
// there are no more. It returns the bytes freed. Cost: about 20 ns a page looked
// at, every page at most twice.
func (t *Table) Evict(want int64) (freed int64) {
	before := t.residentBytes
	// Twice round: the first time may only take the marks of use away.
	for left := 2 * t.pages; left > 0 && before-t.residentBytes < want; left-- {
		if !t.turnHand() {
			break
		}
		t.evict(t.hand)
	}
	return before - t.residentBytes
}

// turnHand moves the hand to the next page, from the last to the first; it
// reports false when there is no page.
func (t *Table) turnHand() bool {
	t.hand.page++
	for range 4 {
		tr := &t.trees[t.hand.tree]
		if t.hand.chunk < len(tr.chunks) && t.hand.page < t.chunkAt(t.hand).entries() {
			return true
		}
		t.hand.chunk, t.hand.page = t.hand.chunk+1, 0
		if t.hand.chunk >= len(tr.chunks) {
			t.hand = place{tree: 1 - t.hand.tree}
		}
	}
	return t.hand.chunk < len(t.trees[t.hand.tree].chunks)
}

func (t *Table) evict(at place) {
	c := t.chunkAt(at)
	r := c.ref(at.page)
	if r == 0 {
		return
	}
	b := page(t.pool.slot(r))
	h := b.header()
	if h&(pageDirty|pageFlushing) != 0 {
		return
	}
	if h&pageHot != 0 {
		b.setHeader(h &^ pageHot)
		return
	}
	t.resident--
	t.residentBytes -= int64(slotBytes(r))
	c.setRef(at.page, 0)
	t.pool.release(r)
}
