package table

// reachText finds the page that text k belongs to; it is false when there is none
// in memory.
func (t *Table) reachText(k string) (at place, m mem, ok bool) {
	at = place{tree: 1, chunk: t.findText(k)}
	if at.chunk < 0 {
		return at, m, false
	}
	p := t.pool
	c := p.mem(p.chunks[t.trees[1].chunks[at.chunk]])
	at.page = c.findSep(k)
	r := c.refNum(at.page)
	return at, p.mem(r), r != 0
}

// addText is Add for a text key whose page is in memory; done is false when it is
// not, or when the page must be unpacked.
func (t *Table) addText(k Key, col Column, delta int64) (v int64, done bool, err error) {
	if err := k.check(); err != nil {
		return 0, true, err
	}
	at, m, ok := t.reachText(k.Text)
	if !ok {
		return 0, false, nil
	}
	var p textPlace
	h := m.header()
	if m.seekText(h, k.Text, &p); !p.ok {
		return delta, t.insertText(at, k.Text, &p, col, delta), nil
	}
	if v, ok = m.addQuickly(h, p.row, col, delta); ok {
		if h&(pageDirty|pageHot) != pageDirty|pageHot {
			t.touch(at, m)
		}
		return v, true, nil
	}
	v, err = t.addToRow(k, at, p.row, col, delta)
	return v, true, err
}

// getText reads cells of the row k; it is false when its page is not in memory.
func (t *Table) getText(k string, cols []Column, values []int64, present []bool) bool {
	_, m, ok := t.reachText(k)
	if !ok {
		return false
	}
	var p textPlace
	h := m.header()
	if m.seekText(h, k, &p); !p.ok {
		clear(values)
		clear(present)
		return true
	}
	if h&pageHot == 0 {
		m.setHeader(h | pageHot)
	}
	for j, col := range cols {
		values[j], present[j] = m.get(h, p.row, col)
	}
	return true
}
