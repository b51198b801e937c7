package engine

import (
	"fmt"
	"math"
	"sync"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/table"
)

// Tx is what Update and View hand to their function: the objects of some keys,
// alone to it until the function returns. What it changes is one journal record,
// so after a crash all of it is there or none. Only keys given to Update may be
// used; another key is a bug in the caller and panics when its partition is not
// held. A Tx is not used after its function returned.
type Tx struct {
	e       *Engine
	write   bool
	mask    uint64 // partitions held
	all     bool   // every slot is to be fenced
	now     int64
	pos     Pos // of what was read
	rec     []byte
	changed []place
	cols    []table.Column
}

var txs = sync.Pool{New: func() any { return new(Tx) }}

func (e *Engine) begin(write bool) *Tx {
	tx := txs.Get().(*Tx)
	*tx = Tx{e: e, write: write, now: e.nowMilli(), rec: tx.rec[:0], changed: tx.changed[:0], cols: tx.cols[:0]}
	return tx
}

func (tx *Tx) include(k counter.Key) { tx.mask |= 1 << tx.e.locate(k.ID).part }

func (tx *Tx) lock() { tx.e.lockMask(tx.mask) }

// commit appends what was changed to the journal and returns the position that
// whoever learns of the changes, or of what was read, must wait for.
func (tx *Tx) commit() Pos {
	if len(tx.rec) == 0 {
		return tx.pos
	}
	pos := tx.e.journal.Append(tx.rec)
	if tx.all {
		tx.e.fenceAll(pos)
	}
	for _, at := range tx.changed {
		tx.e.parts[at.part].fence[at.slot] = pos
	}
	return pos
}

// release gives up the locks.
func (tx *Tx) release() {
	for p := range tx.e.parts {
		if tx.mask&(1<<p) != 0 {
			tx.e.settle(&tx.e.parts[p])
		}
	}
	tx.e.unlockMask(tx.mask)
	txs.Put(tx)
}

// Update runs fn with the objects of keys held. When fn returns an error, what
// it had changed before stays changed: the methods of Tx are each all or nothing.
func (e *Engine) Update(keys []counter.Key, fn func(*Tx) error) (Pos, error) {
	if err := e.Admit(); err != nil {
		return 0, err
	}
	return e.run(true, e.maskOf(keys), fn)
}

// UpdateAll is Update with every object held.
func (e *Engine) UpdateAll(fn func(*Tx) error) (Pos, error) {
	if err := e.Admit(); err != nil {
		return 0, err
	}
	return e.run(true, e.maskAll(), fn)
}

// View is Update for a function that only reads.
func (e *Engine) View(keys []counter.Key, fn func(*Tx) error) (Pos, error) {
	return e.run(false, e.maskOf(keys), fn)
}

func (e *Engine) maskOf(keys []counter.Key) (mask uint64) {
	for _, k := range keys {
		mask |= 1 << e.locate(k.ID).part
	}
	return mask
}

func (e *Engine) maskAll() uint64 { return math.MaxUint64 >> (64 - len(e.parts)) }

func (e *Engine) run(write bool, mask uint64, fn func(*Tx) error) (Pos, error) {
	tx := e.begin(write)
	tx.mask = mask
	tx.lock()
	defer tx.release()
	err := fn(tx)
	return tx.commit(), err
}

// Now is the time of the transaction, in unix milliseconds.
func (tx *Tx) Now() int64 { return tx.now }

// row finds an object; ok is false when its namespace has none in that partition.
func (tx *Tx) row(k counter.Key) (r row, at place, ok bool, err error) {
	at = tx.e.locate(k.ID)
	if tx.mask&(1<<at.part) == 0 {
		panic(fmt.Sprintf("engine: key %s was not given to Update", k))
	}
	part := &tx.e.parts[at.part]
	tx.pos = max(tx.pos, part.fence[at.slot])
	ns := tx.e.lookup(k.Namespace)
	if ns == nil || ns.tables[at.part] == nil {
		return row{}, at, false, nil
	}
	r, err = tx.e.seek(part, ns, k.ID, at)
	return r, at, err == nil, err
}

// edit is row for a write: expired parts are gone, and the place is fenced at commit.
func (tx *Tx) edit(k counter.Key) (r row, ok bool, err error) {
	if !tx.write {
		panic("engine: a View changes something")
	}
	r, at, ok, err := tx.row(k)
	if !ok {
		return r, false, err
	}
	tx.changed = append(tx.changed, at)
	return r, true, tx.e.bury(r, &tx.rec, tx.now)
}

// target is edit for a write to a counter, which declares what is undeclared.
func (tx *Tx) target(k counter.Key, name string) (row, table.Column, error) {
	if err := checkID(k.ID); err != nil {
		return row{}, 0, err
	}
	ns, _, col, err := tx.e.column(k.Namespace, name)
	if err != nil {
		return row{}, 0, err
	}
	tx.e.table(&tx.e.parts[tx.e.locate(k.ID).part], ns)
	r, _, err := tx.edit(k)
	return r, col, err
}

// Get reads one counter.
func (tx *Tx) Get(k counter.Key, name string) (v int64, present bool, err error) {
	r, _, ok, err := tx.row(k)
	if !ok {
		return 0, false, err
	}
	col, ok := r.c.byName[name]
	if !ok {
		return 0, false, nil
	}
	v, present = r.get(col, tx.now)
	return v, present, nil
}

// Exists tells whether the object is there.
func (tx *Tx) Exists(k counter.Key) (bool, error) {
	r, _, ok, err := tx.row(k)
	return ok && r.exists(tx.now), err
}

// Values appends the present counters of an object in the order they were declared.
func (tx *Tx) Values(k counter.Key, dst []counter.Value) ([]counter.Value, error) {
	r, _, ok, err := tx.row(k)
	if !ok {
		return dst, err
	}
	return r.values(dst, tx.now), nil
}

// Add adds to one counter. Errors as of Engine.Add; the value is the one that stands.
func (tx *Tx) Add(k counter.Key, name string, by int64) (int64, error) {
	r, col, err := tx.target(k, name)
	if err != nil {
		return 0, err
	}
	old, _ := r.cur.Get(col)
	v, err := step(&r.c.defs[col], old, by)
	if err != nil {
		return v, err
	}
	return v, tx.e.set(r, &tx.rec, col, v)
}

// AddDeltas adds to several counters of one object, all or none; values has the
// length of deltas and gets what each counter holds then.
func (tx *Tx) AddDeltas(k counter.Key, deltas []counter.Delta, values []int64) error {
	if err := checkAdd(&Add{Key: k, Deltas: deltas}); err != nil {
		return err
	}
	var ns *namespace
	tx.cols = tx.cols[:0]
	for _, d := range deltas {
		n, _, col, err := tx.e.column(k.Namespace, d.Counter)
		if err != nil {
			return err
		}
		ns, tx.cols = n, append(tx.cols, col)
	}
	at := tx.e.locate(k.ID)
	if tx.mask&(1<<at.part) == 0 {
		panic(fmt.Sprintf("engine: key %s was not given to Update", k))
	}
	part := &tx.e.parts[at.part]
	tx.pos = max(tx.pos, part.fence[at.slot])
	tx.changed = append(tx.changed, at)
	return tx.e.addAll(part, &tx.rec, ns, k.ID, at, tx.cols, deltas, values)
}

// Set gives a counter a value. ErrBounds when its schema forbids the value.
func (tx *Tx) Set(k counter.Key, name string, v int64) error {
	r, col, err := tx.target(k, name)
	if err != nil {
		return err
	}
	if s := &r.c.defs[col]; v < s.Min || v > s.Max {
		return fmt.Errorf("counter %q holds %d to %d, %d is outside: %w", s.Name, s.Min, s.Max, v, counter.ErrBounds)
	}
	return tx.e.set(r, &tx.rec, col, v)
}

// Clear makes a counter absent; the object goes with its last counter.
func (tx *Tx) Clear(k counter.Key, name string) (was bool, err error) {
	r, ok, err := tx.edit(k)
	if !ok || err != nil {
		return false, err
	}
	col, ok := r.c.byName[name]
	if !ok {
		return false, nil
	}
	return tx.e.clear(r, &tx.rec, col)
}

// Delete removes an object with its counters and expiry.
func (tx *Tx) Delete(k counter.Key) (was bool, err error) {
	r, ok, err := tx.edit(k)
	if !ok || err != nil || !r.cur.Exists() {
		return false, err
	}
	return true, tx.e.remove(r, &tx.rec)
}

// DeleteAll removes every object of every namespace; schemas stay. Only in UpdateAll.
func (tx *Tx) DeleteAll() {
	if !tx.write || tx.mask != tx.e.maskAll() {
		panic("engine: DeleteAll outside UpdateAll")
	}
	tx.rec = tx.e.drop(tx.rec, everything, true)
	tx.all = true
}

// Expiry reads when an object expires: unix milliseconds, 0 for never.
func (tx *Tx) Expiry(k counter.Key) (unixMilli int64, exists bool, err error) {
	r, _, ok, err := tx.row(k)
	if !ok || !r.exists(tx.now) {
		return 0, false, err
	}
	unixMilli, _ = r.cur.Get(columnObjectExpiry)
	return unixMilli, true, nil
}

// SetExpiry says when an object expires: unix milliseconds; 0 for never; a time
// that is past deletes it. An absent object is left absent.
func (tx *Tx) SetExpiry(k counter.Key, unixMilli int64) error {
	r, ok, err := tx.expiring(k, unixMilli)
	if !ok || err != nil || !r.cur.Exists() {
		return err
	}
	if unixMilli != 0 && unixMilli <= tx.now {
		return tx.e.remove(r, &tx.rec)
	}
	return tx.e.setExpiry(r, &tx.rec, columnObjectExpiry, unixMilli)
}

// CounterExpiry is Expiry for one counter; exists tells whether the counter is present.
func (tx *Tx) CounterExpiry(k counter.Key, name string) (unixMilli int64, exists bool, err error) {
	r, _, ok, err := tx.row(k)
	if !ok {
		return 0, false, err
	}
	col, ok := r.c.byName[name]
	if !ok {
		return 0, false, nil
	}
	if _, exists = r.get(col, tx.now); exists {
		unixMilli, _ = r.cur.Get(columnCounterExpiry + col)
	}
	return unixMilli, exists, nil
}

// SetCounterExpiry is SetExpiry for one counter.
func (tx *Tx) SetCounterExpiry(k counter.Key, name string, unixMilli int64) error {
	r, ok, err := tx.expiring(k, unixMilli)
	if !ok || err != nil {
		return err
	}
	col, ok := r.c.byName[name]
	if !ok {
		return nil
	}
	if _, present := r.cur.Get(col); !present {
		return nil
	}
	if unixMilli != 0 && unixMilli <= tx.now {
		_, err := tx.e.clear(r, &tx.rec, col)
		return err
	}
	return tx.e.setExpiry(r, &tx.rec, columnCounterExpiry+col, unixMilli)
}

// expiring is edit for an object that gets an expiry: from the first one on,
// rows of its namespace are looked at for their time.
func (tx *Tx) expiring(k counter.Key, unixMilli int64) (row, bool, error) {
	if ns := tx.e.lookup(k.Namespace); unixMilli != 0 && ns != nil && !ns.columns.Load().expires {
		if _, err := tx.e.declare(ns.name, func(c *columns) error { c.expires = true; return nil }); err != nil {
			return row{}, false, err
		}
	}
	return tx.edit(k)
}

// setExpiry writes an expiry column, or removes it for 0.
func (e *Engine) setExpiry(r row, rec *[]byte, col table.Column, unixMilli int64) error {
	if unixMilli != 0 {
		return e.set(r, rec, col, unixMilli)
	}
	was, err := r.cur.Clear(col)
	if err != nil {
		return e.poison(err)
	}
	if was {
		*rec = appendClear(*rec, r.ns.number, r.id, col)
	}
	return nil
}
