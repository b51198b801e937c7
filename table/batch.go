package table

// A lookup of a row that is not in the processor's caches waits for memory twice
// or more, one wait after the other. Here up to batchSize lookups go side by
// side in stages; each stage touches the memory that the next one needs, so that
// the waits overlap. Go has no prefetch instruction: a load whose result is not
// waited for does the same.
//
// Measured (bench/table, 20 M rows): see docs/format/page.md.
const batchSize = 64

// probe is a lookup under way.
type probe struct {
	m          mem // its chunk, then its page
	at         place
	off        uint64
	h          header
	row, unary int
	low, lane  int // bytes of the page that the last stage reads
	state      probeState
}

type probeState uint8

const (
	probeSlow  probeState = iota // text, or its page is not in memory: no stages
	probeChunk                   // its chunk is known
	probePage                    // its page is known
	probeFound                   // its bucket is known
	probeEnd                     // it belongs behind the last bucket
)

// begin finds the pages of up to batchSize keys. The loops that touch memory do
// nothing else: the shorter they are, the more of them the processor has under
// way.
func (t *Table) begin(keys []Key) []probe {
	p := t.pool
	if p.probes == nil {
		p.probes = make([]probe, batchSize)
	}
	ps := p.probes[:len(keys)]
	tr := &t.trees[0]
	for i := range ps {
		k, q := &keys[i], &ps[i]
		q.state = probeSlow
		if k.IsText {
			continue
		}
		if n := findFirst(tr.firsts, k.Num); n >= 0 {
			q.at.chunk = n
			q.m, q.state = p.mem(p.chunks[tr.chunks[n]]), probeChunk
		}
	}
	touched := byte(0)
	for i := range ps {
		if q := &ps[i]; q.state == probeChunk {
			touched += q.m.byte(0)
		}
	}
	for i := range ps {
		q := &ps[i]
		if q.state != probeChunk {
			continue
		}
		page, sep := q.m.findNum(keys[i].Num)
		q.at.page = page
		q.state = probeSlow
		if r := q.m.refNum(page); r != 0 {
			q.m, q.off, q.state = p.mem(r), keys[i].Num-sep, probePage
		}
	}
	for i := range ps {
		if q := &ps[i]; q.state == probePage {
			touched += q.m.byte(0) + q.m.byte(64)
		}
	}
	p.touchSink = touched
	return ps
}

// buckets finds the buckets of the probes and touches the lines of the low part
// and of the first-level lanes of the columns: one for each probe, or one for all.
func (t *Table) buckets(ps []probe, cols []Column) {
	for i := range ps {
		q := &ps[i]
		if q.state != probePage {
			continue
		}
		q.h = q.m.header()
		var ok bool
		q.state = probeEnd
		if q.row, q.unary, ok = q.m.bucket(q.h, q.off); !ok {
			continue
		}
		q.state = probeFound
		q.low = (q.h.lowsAt() + q.row*q.h.lowBits()) >> 3
		q.lane = q.low
		col := cols[0]
		if len(cols) == len(ps) {
			col = cols[i]
		}
		if _, d, at, ok := q.m.column(q.h, col); ok && !d.sparse() {
			q.lane = (at + q.row<<uint(d.form())) >> 3
		}
	}
	touched := byte(0)
	for i := range ps {
		if q := &ps[i]; q.state == probeFound {
			touched += q.m.byte(q.low) + q.m.byte(q.lane)
		}
	}
	t.pool.touchSink += touched
}

// AddBatch is Add for each i; the slices have one length. Values and errs are
// filled. Items with equal keys are applied in order.
func (t *Table) AddBatch(keys []Key, cols []Column, deltas []int64, values []int64, errs []error) {
	for len(keys) > 0 {
		n := min(batchSize, len(keys))
		t.addBatch(keys[:n], cols[:n], deltas[:n], values[:n], errs[:n])
		keys, cols, deltas, values, errs = keys[n:], cols[n:], deltas[n:], values[n:], errs[n:]
	}
}

func (t *Table) addBatch(keys []Key, cols []Column, deltas []int64, values []int64, errs []error) {
	ps := t.begin(keys)
	t.buckets(ps, cols)
	shape := t.shape
	for i := range ps {
		if v, ok := t.finishAdd(&ps[i], cols[i], deltas[i], shape); ok {
			values[i], errs[i] = v, nil
		} else {
			values[i], errs[i] = t.Add(keys[i], cols[i], deltas[i])
		}
	}
}

// finishAdd adds to the probe's row, if that is quickly done and the probe still
// holds.
func (t *Table) finishAdd(q *probe, col Column, delta int64, shape uint64) (v int64, ok bool) {
	if q.state != probeFound || t.shape != shape {
		return 0, false
	}
	// An item before may have moved the page, or changed it; its keys are the same
	// as long as it has as many, since adds only bring new ones.
	m := t.memAt(q.at)
	h := m.header()
	if h.rows() != q.h.rows() || h.keyBytes() != q.h.keyBytes() {
		return 0, false
	}
	row, _, ok := m.inBucket(h, q.off, q.row, q.unary)
	if !ok {
		return 0, false
	}
	if v, ok = m.addQuickly(h, row, col, delta); ok && h&(pageDirty|pageHot) != pageDirty|pageHot {
		t.touch(q.at, m)
	}
	return v, ok
}

// GetBatch reads the cells cols of each key: those of keys[i] are put at
// values[i*len(cols)] and present[i*len(cols)] on; absent gives 0, false. It
// stops at the first error, which is one of Seek's.
func (t *Table) GetBatch(keys []Key, cols []Column, values []int64, present []bool) error {
	var c Cursor
	m := len(cols)
	if m == 0 {
		return nil
	}
	for len(keys) > 0 {
		n := min(batchSize, len(keys))
		ps := t.begin(keys[:n])
		t.buckets(ps, cols[:1])
		reread := false
		for i := range ps {
			vs, oks := values[i*m:(i+1)*m], present[i*m:(i+1)*m]
			if keys[i].IsText && t.getText(keys[i].Text, cols, vs, oks) {
				continue
			}
			if reread || !t.finishGet(&ps[i], cols, vs, oks) {
				reread = true // reading a page in may move others
				if err := t.Seek(&c, keys[i]); err != nil {
					return err
				}
				for j, col := range cols {
					vs[j], oks[j] = c.Get(col)
				}
			}
		}
		keys, values, present = keys[n:], values[n*m:], present[n*m:]
	}
	return nil
}

// finishGet reads the probe's row; it reports false when the probe has no page.
func (t *Table) finishGet(p *probe, cols []Column, values []int64, present []bool) bool {
	if p.state == probeSlow {
		return false
	}
	row, ok := 0, false
	if p.state == probeFound {
		row, _, ok = p.m.inBucket(p.h, p.off, p.row, p.unary)
	}
	if !ok {
		clear(values)
		clear(present)
		return true
	}
	if p.h&pageHot == 0 {
		p.m.setHeader(p.m.header() | pageHot)
	}
	for j, col := range cols {
		values[j], present[j] = p.m.get(p.h, row, col)
	}
	return true
}
