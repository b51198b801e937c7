package engine

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/table"
)

// Add is one add of a batch: deltas to counters of one object, all or none.
type Add struct {
	Key    counter.Key
	Deltas []counter.Delta
	Token  string // "": none

	// Answer.
	Values  []int64 // what each delta's counter holds after it, or as it stands
	Outcome counter.Outcome
	Err     error // why it was rejected or failed
}

func (a *Add) settle(err error) {
	a.Err = err
	switch {
	case err == nil:
		a.Outcome = counter.Applied
	case errors.Is(err, counter.ErrBounds):
		a.Outcome = counter.Rejected
	default:
		a.Outcome = counter.Failed
	}
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func tooMany(n int) error {
	return fmt.Errorf("a batch of %d, the limit is %d; split it: %w", n, counter.BatchMax, counter.ErrInvalid)
}

// batch is the scratch of one batch call, reused from call to call.
type batch struct {
	items  []batchItem
	order  []int32 // items by partition, in their order
	counts [partitionsMax + 1]int32

	// A run of plain adds (or reads) of one table, handed over at once so that
	// its cache misses overlap.
	run    []int32
	keys   []table.Key
	cols   []table.Column
	deltas []int64
	values []int64
	errs   []error

	present []bool
	fp      []byte
}

// batchItem is one add or read of a batch.
type batchItem struct {
	ns  *namespace // nil: refused
	id  counter.ID
	at  place
	col table.Column
	by  int64
	add *Add // what is more than one plain delta

	value int64
	err   error
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// sort orders the items by partition, stably.
func (b *batch) sort(partitions int) {
	clear(b.counts[:partitions+1])
	for i := range b.items {
		b.counts[b.items[i].at.part+1]++
	}
	for p := 0; p < partitions; p++ {
		b.counts[p+1] += b.counts[p]
	}
	b.order = resize(b.order, len(b.items))
	next := b.counts
	for i := range b.items {
		p := b.items[i].at.part
		b.order[next[p]] = int32(i)
		next[p]++
	}
}

// AddBatch applies many adds, each by itself: each is atomic and has its own
// outcome in the answer fields. Adds to the same object happen in their order.
// The error is for the whole batch, which then changed nothing.
func (e *Engine) AddBatch(adds []Add) (Pos, error) {
	if len(adds) > counter.BatchMax {
		return 0, tooMany(len(adds))
	}
	if err := e.Admit(); err != nil {
		return 0, err
	}
	b := batches.Get().(*batch)
	defer batches.Put(b)
	b.items = resize(b.items, len(adds))
	var m memo
	for i := range adds {
		a := &adds[i]
		a.Values = resize(a.Values, len(a.Deltas))
		it := &b.items[i]
		*it = batchItem{id: a.Key.ID}
		if it.err = checkAdd(a); it.err == nil {
			m.column(e, it, a.Key.Namespace, a.Deltas[0].Counter)
			it.by = a.Deltas[0].By
		}
		if len(a.Deltas) != 1 || a.Token != "" {
			it.add = a
		}
	}
	pos := e.addItems(b)
	for i := range adds {
		a, it := &adds[i], &b.items[i]
		if it.ns != nil && it.add != nil {
			continue // addSlow has answered
		}
		if len(a.Deltas) == 1 {
			a.Values[0] = it.value
		}
		a.settle(it.err)
	}
	return pos, nil
}

// AddEach is AddBatch for the common add: one delta, no token. All slices have
// one length; values gets what each counter holds after its add, or as it stands.
func (e *Engine) AddEach(keys []counter.Key, names []string, by, values []int64, errs []error) (Pos, error) {
	if len(keys) > counter.BatchMax {
		return 0, tooMany(len(keys))
	}
	if err := e.Admit(); err != nil {
		return 0, err
	}
	b := batches.Get().(*batch)
	defer batches.Put(b)
	b.items = resize(b.items, len(keys))
	var m memo
	for i := range keys {
		it := &b.items[i]
		*it = batchItem{id: keys[i].ID, by: by[i]}
		if it.err = checkID(it.id); it.err == nil {
			m.column(e, it, keys[i].Namespace, names[i])
		}
	}
	pos := e.addItems(b)
	for i := range keys {
		values[i], errs[i] = b.items[i].value, b.items[i].err
	}
	return pos, nil
}

// memo spares look-ups: runs of adds mostly name the same counter.
type memo struct {
	ns   *namespace
	name string
	col  table.Column
}

func (m *memo) column(e *Engine, it *batchItem, ns, name string) {
	if m.ns == nil || m.ns.name != ns || m.name != name {
		n, _, col, err := e.column(ns, name)
		if err != nil {
			it.err = err
			return
		}
		*m = memo{n, name, col}
	}
	it.ns, it.col = m.ns, m.col
	it.at = e.locate(it.id)
}

// addItems applies the items, partition by partition.
func (e *Engine) addItems(b *batch) Pos {
	b.sort(len(e.parts))
	var pos Pos
	for p := range e.parts {
		if mine := b.order[b.counts[p]:b.counts[p+1]]; len(mine) > 0 {
			pos = max(pos, e.addPart(&e.parts[p], b, mine))
		}
	}
	return pos
}

func checkAdd(a *Add) error {
	if len(a.Deltas) == 0 {
		return fmt.Errorf("the add to %s has no delta: %w", a.Key, counter.ErrInvalid)
	}
	if len(a.Deltas) > counter.DeltasMax {
		return fmt.Errorf("the add to %s has %d deltas, the limit is %d: %w", a.Key, len(a.Deltas), counter.DeltasMax, counter.ErrInvalid)
	}
	return checkID(a.Key.ID)
}

// addPart applies one partition's share of a batch as one journal record.
func (e *Engine) addPart(part *partition, b *batch, mine []int32) Pos {
	part.mu.Lock()
	defer part.mu.Unlock()
	part.rec = part.rec[:0]
	var pos Pos
	b.run = b.run[:0]
	for _, i := range mine {
		it := &b.items[i]
		if it.ns == nil {
			continue // refused before
		}
		if it.ns.gone { // dropped since it was looked up
			e.addRun(part, b)
			name := it.ns.columns.Load().defs[it.col].Name
			ns, _, col, err := e.column(it.ns.name, name)
			if err != nil {
				it.ns, it.err = nil, err
				continue
			}
			it.ns, it.col = ns, col
		}
		if it.add == nil && it.ns.columns.Load().plain(it.col) {
			if len(b.run) > 0 && b.items[b.run[0]].ns != it.ns {
				e.addRun(part, b)
			}
			b.run = append(b.run, i)
			continue
		}
		e.addRun(part, b)
		if it.add != nil {
			e.addSlow(part, b, it.add, it)
		} else {
			it.value, it.err = e.addOne(part, &part.rec, it.ns, it.id, it.at, it.col, it.by)
		}
		pos = max(pos, part.fence[it.at.slot])
	}
	e.addRun(part, b)
	if len(part.rec) == 0 {
		return pos
	}
	pos = e.commit(part)
	for _, i := range mine {
		if it := &b.items[i]; it.ns != nil {
			part.fence[it.at.slot] = pos
		}
	}
	return pos
}

// addRun hands the collected plain adds to their table.
func (e *Engine) addRun(part *partition, b *batch) {
	n := len(b.run)
	if n == 0 {
		return
	}
	b.keys, b.cols, b.deltas = resize(b.keys, n), resize(b.cols, n), resize(b.deltas, n)
	b.values, b.errs = resize(b.values, n), resize(b.errs, n)
	ns := b.items[b.run[0]].ns
	t := e.table(part, ns)
	for j, i := range b.run {
		it := &b.items[i]
		b.keys[j], b.cols[j], b.deltas[j] = it.at.key, it.col, it.by
	}
	if err := e.readyAll(part, t, b.keys); err != nil {
		for _, i := range b.run {
			b.items[i].err = err
		}
		b.run = b.run[:0]
		return
	}
	t.AddBatch(b.keys, b.cols, b.deltas, b.values, b.errs)
	for j, i := range b.run {
		it := &b.items[i]
		it.value = b.values[j]
		if err := b.errs[j]; err != nil {
			it.err = fmt.Errorf("counter %q of object %s: %w", ns.columns.Load().defs[it.col].Name, it.id, err)
			continue
		}
		part.rec = appendSetOne(part.rec, ns.number, it.id, it.col, it.value)
	}
	b.run = b.run[:0]
}

// addSlow applies an add with a token, several deltas, bounds or expiry.
func (e *Engine) addSlow(part *partition, b *batch, a *Add, it *batchItem) {
	var entry tokenEntry
	if a.Token != "" {
		now := e.nowMilli()
		ms, err := e.checkToken(a.Token, now)
		if err != nil {
			a.settle(err)
			return
		}
		entry.unixMilli = ms
		entry.fingerprint, b.fp = fingerprint(b.fp, it.ns.number, it.at.key, a.Token)
		entry.content, b.fp = contentHash(b.fp, a.Deltas)
		e.tokenCount.Add(-int64(part.tokens.expire(now)))
		if seen := part.tokens.find(&entry.fingerprint); seen != nil {
			e.repeat(part, a, it, seen.content == entry.content)
			return
		}
		if e.tokenCount.Load() >= int64(e.opts.TokensMax) {
			a.settle(fmt.Errorf("%d tokens are remembered, the limit; use a session, or allow more: %w", e.opts.TokensMax, counter.ErrBusy))
			return
		}
	}
	var err error
	if len(a.Deltas) == 1 {
		a.Values[0], err = e.addOne(part, &part.rec, it.ns, a.Key.ID, it.at, it.col, a.Deltas[0].By)
	} else {
		b.cols = b.cols[:0]
		for _, d := range a.Deltas {
			_, _, col, cerr := e.column(a.Key.Namespace, d.Counter)
			if cerr != nil {
				a.settle(cerr)
				return
			}
			b.cols = append(b.cols, col)
		}
		err = e.addAll(part, &part.rec, it.ns, a.Key.ID, it.at, b.cols, a.Deltas, a.Values)
	}
	a.settle(err)
	if err == nil && a.Token != "" {
		part.rec = appendToken(part.rec, part.index, entry)
		part.tokens.add(entry)
		e.tokenCount.Add(1)
	}
}

// repeat answers an add whose token was seen before.
func (e *Engine) repeat(part *partition, a *Add, it *batchItem, same bool) {
	if !same {
		a.settle(fmt.Errorf("the token was used for another add to %s; nothing was changed: %w", a.Key, counter.ErrConflict))
		return
	}
	r, err := e.seek(part, it.ns, a.Key.ID, it.at)
	if err != nil {
		a.settle(err)
		return
	}
	a.Outcome = counter.Duplicate
	for i, d := range a.Deltas {
		a.Values[i] = 0
		if col, ok := r.c.byName[d.Counter]; ok {
			a.Values[i], _ = r.get(col, r.now(e))
		}
	}
}

// ReadBatch reads the named counters of many objects: values and present hold
// len(keys) × len(names) entries, object by object. exists, if not nil, tells
// for each key whether the object is there.
func (e *Engine) ReadBatch(keys []counter.Key, names []string, values []int64, present, exists []bool) (Pos, error) {
	if len(keys) > counter.BatchMax {
		return 0, tooMany(len(keys))
	}
	clear(values)
	clear(present)
	clear(exists)
	b := batches.Get().(*batch)
	defer batches.Put(b)
	b.items = resize(b.items, len(keys))
	for i := range keys {
		b.items[i] = batchItem{at: e.locate(keys[i].ID)}
	}
	b.sort(len(e.parts))
	var pos Pos
	for p := range e.parts {
		mine := b.order[b.counts[p]:b.counts[p+1]]
		if len(mine) == 0 {
			continue
		}
		last, err := e.readPart(&e.parts[p], b, keys, mine, names, values, present, exists)
		if err != nil {
			return 0, err
		}
		pos = max(pos, last)
	}
	return pos, nil
}

func (e *Engine) readPart(part *partition, b *batch, keys []counter.Key, mine []int32, names []string, values []int64, present, exists []bool) (Pos, error) {
	part.mu.Lock()
	defer part.mu.Unlock()
	defer e.settle(part)
	var pos Pos
	var ns *namespace
	for len(mine) > 0 {
		if k := keys[mine[0]]; ns == nil || ns.name != k.Namespace {
			ns = e.lookup(k.Namespace)
		}
		b.run = b.run[:0]
		for len(mine) > 0 && (len(b.run) == 0 || keys[mine[0]].Namespace == keys[b.run[0]].Namespace) {
			b.run = append(b.run, mine[0])
			pos = max(pos, part.fence[b.items[mine[0]].at.slot])
			mine = mine[1:]
		}
		if ns == nil || ns.tables[part.index] == nil {
			continue
		}
		if err := e.readRun(part, ns, b, keys, names, values, present, exists); err != nil {
			return 0, err
		}
	}
	return pos, nil
}

// readRun reads the collected objects of one table.
func (e *Engine) readRun(part *partition, ns *namespace, b *batch, keys []counter.Key, names []string, values []int64, present, exists []bool) error {
	c := ns.columns.Load()
	if c.expires || exists != nil {
		for _, i := range b.run {
			r, err := e.seek(part, ns, keys[i].ID, b.items[i].at)
			if err != nil {
				return err
			}
			now := r.now(e)
			if exists != nil {
				exists[i] = r.exists(now)
			}
			for j, name := range names {
				if col, ok := c.byName[name]; ok {
					at := int(i)*len(names) + j
					values[at], present[at] = r.get(col, now)
				}
			}
		}
		return nil
	}
	b.cols = b.cols[:0]
	for _, name := range names {
		col, ok := c.byName[name]
		if !ok {
			col = columnNone
		}
		b.cols = append(b.cols, col)
	}
	n := len(b.run)
	b.keys = resize(b.keys, n)
	for j, i := range b.run {
		b.keys[j] = b.items[i].at.key
	}
	t := ns.tables[part.index]
	if err := e.readyAll(part, t, b.keys); err != nil {
		return err
	}
	w := len(names)
	b.values, b.present = resize(b.values, n*w), resize(b.present, n*w)
	if err := t.GetBatch(b.keys, b.cols, b.values, b.present); err != nil {
		return fmt.Errorf("namespace %q: %w", ns.name, err)
	}
	for j, i := range b.run {
		copy(values[int(i)*w:], b.values[j*w:(j+1)*w])
		copy(present[int(i)*w:], b.present[j*w:(j+1)*w])
	}
	return nil
}
