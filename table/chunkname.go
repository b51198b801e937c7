package table

// ChunkName appends the name of the chunk that row k belongs to and tells whether
// its page is in memory. A key that has no chunk yet has no name, and counts as
// in memory. The chunk named is the only part of the table that a change of row k
// can load or move.
func (t *Table) ChunkName(k Key, dst []byte) (name []byte, resident bool) {
	at, ok := t.locate(k)
	if !ok {
		return dst, true
	}
	c := t.chunkAt(at)
	return AppendName(dst, c.sep(0)), c.ref(at.page) != 0
}
