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
	at    place
	c     chunk
	b     page
	h     header
	off   uint64
	row   int
	unary int
	low   int // bytes of the page that the next stage reads
	lane  int
	state probeState
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
	if t.pool.probes == nil {
		t.pool.probes = make([]probe, batchSize)
	}
	ps := t.pool.probes[:len(keys)]
	for i := range keys {
		k, p := &keys[i], &ps[i]
		p.state = probeSlow
		if k.IsText {
			continue
		}
		if n := findFirst(t.trees[0].firsts, k.Num); n >= 0 {
			p.at = place{chunk: n}
			p.c, p.state = t.chunkAt(p.at), probeChunk
		}
	}
	touched := byte(0)
	for i := range ps {
		if p := &ps[i]; p.state == probeChunk {
			touched += p.c[0]
		}
	}
	for i := range ps {
		p := &ps[i]
		if p.state != probeChunk {
			continue
		}
		p.at.page = p.c.find(keys[i])
		p.state = probeSlow
		if r := p.c.ref(p.at.page); r != 0 {
			p.b, p.off, p.state = page(t.pool.slot(r)), keys[i].Num-p.c.sep(p.at.page).Num, probePage
		}
	}
	for i := range ps {
		if p := &ps[i]; p.state == probePage {
			touched += p.b[0] + p.b[64]
		}
	}
	t.pool.touchSink = touched
	return ps
}

// buckets finds the buckets of the probes and touches the lines of the low part
// and of the first-level lane of column col.
func (t *Table) buckets(ps []probe, col func(i int) Column) {
	for i := range ps {
		p := &ps[i]
		if p.state != probePage {
			continue
		}
		p.h = p.b.header()
		var ok bool
		p.state = probeEnd
		if p.row, p.unary, ok = memOf(p.b).bucket(p.h, p.off); !ok {
			continue
		}
		p.state = probeFound
		p.low = (p.h.lowsAt() + p.row*p.h.lowBits()) >> 3
		p.lane = p.low
		if _, d, at, ok := memOf(p.b).column(p.h, col(i)); ok && !d.sparse() {
			p.lane = (at + p.row*levelBits[d.form()][0]) >> 3
		}
	}
	touched := byte(0)
	for i := range ps {
		if p := &ps[i]; p.state == probeFound {
			touched += p.b[p.low] + p.b[p.lane]
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
	t.buckets(ps, func(i int) Column { return cols[i] })
	shape := t.shape
	for i := range ps {
		var done bool
		if values[i], done, errs[i] = t.finishAdd(&ps[i], cols[i], deltas[i], shape); !done {
			values[i], errs[i] = t.Add(keys[i], cols[i], deltas[i])
		}
	}
}

// finishAdd adds to the probe's row, if it exists and the probe still holds.
func (t *Table) finishAdd(p *probe, col Column, delta int64, shape uint64) (v int64, done bool, err error) {
	if p.state != probeFound || t.shape != shape {
		return 0, false, nil
	}
	// An item before may have moved the page, or changed it; its keys are the same
	// as long as it has as many, since adds only bring new ones.
	m := t.pool.mem(t.chunkAt(p.at).ref(p.at.page))
	h := m.header()
	if h.rows() != p.h.rows() || h.lowBits() != p.h.lowBits() || h.buckets() != p.h.buckets() {
		return 0, false, nil
	}
	row, _, ok := m.inBucket(h, p.off, p.row, p.unary)
	if !ok {
		return 0, false, nil
	}
	return t.addToRow(p.at, m, h, row, col, delta)
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
		t.buckets(ps, func(int) Column { return cols[0] })
		reread := false
		for i := range ps {
			vs, oks := values[i*m:(i+1)*m], present[i*m:(i+1)*m]
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
		row, _, ok = memOf(p.b).inBucket(p.h, p.off, p.row, p.unary)
	}
	if !ok {
		clear(values)
		clear(present)
		return true
	}
	if p.h&pageHot == 0 {
		p.b.setHeader(p.b.header() | pageHot)
	}
	for j, col := range cols {
		values[j], present[j] = memOf(p.b).get(p.h, row, col)
	}
	return true
}
