package engine

import (
	"fmt"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/table"
)

// The hot calls: one object, one lock, no allocation while nothing is refused.

// Add adds by to counter name of object k and returns the value after it.
//
// Errors: ErrOverflow and ErrBounds (the value returned is the one that stands),
// ErrInvalid, ErrReadOnly, ErrUnavailable, ErrCorrupt. Nothing is changed then.
// Strings are only read during the call.
func (e *Engine) Add(k counter.Key, name string, by int64) (int64, Pos, error) {
	if err := e.writable(); err != nil {
		return 0, 0, err
	}
	if err := checkID(k.ID); err != nil {
		return 0, 0, err
	}
	for {
		ns, _, col, err := e.column(k.Namespace, name)
		if err != nil {
			return 0, 0, err
		}
		at := e.locate(k.ID)
		part := &e.parts[at.part]
		part.mu.Lock()
		if ns.gone { // dropped since; look it up anew
			part.mu.Unlock()
			continue
		}
		part.rec = part.rec[:0]
		v, err := e.addOne(part, &part.rec, ns, k.ID, at, col, by)
		pos := part.fence[at.slot]
		if len(part.rec) > 0 {
			pos = e.commit(part)
			part.fence[at.slot] = pos
		}
		part.mu.Unlock()
		return v, pos, err
	}
}

// Get reads one counter; present is false when the object or the counter is absent.
func (e *Engine) Get(k counter.Key, name string) (v int64, present bool, pos Pos, err error) {
	at := e.locate(k.ID)
	part := &e.parts[at.part]
	part.mu.Lock()
	if ns, c, col, ok := e.lookupColumn(k.Namespace, name); ok && ns.tables[at.part] != nil {
		if !c.expires {
			v, present, err = e.get(part, ns.tables[at.part], at.key, col)
		} else {
			var r row
			if r, err = e.seek(part, ns, k.ID, at); err == nil {
				v, present = r.get(col, e.nowMilli())
			}
		}
		e.settle(part)
	}
	pos = part.fence[at.slot]
	part.mu.Unlock()
	return v, present, pos, err
}

func (e *Engine) get(part *partition, t *table.Table, k table.Key, col table.Column) (int64, bool, error) {
	if err := e.ready(part, t, k); err != nil {
		return 0, false, err
	}
	if err := t.Seek(&part.cursor, k); err != nil {
		return 0, false, err
	}
	v, ok := part.cursor.Get(col)
	return v, ok, nil
}

// Read reads the named counters of one object into values and present, which
// have the length of names.
func (e *Engine) Read(k counter.Key, names []string, values []int64, present []bool) (exists bool, pos Pos, err error) {
	clear(values)
	clear(present)
	at := e.locate(k.ID)
	part := &e.parts[at.part]
	part.mu.Lock()
	defer part.mu.Unlock()
	if ns := e.lookup(k.Namespace); ns != nil && ns.tables[at.part] != nil {
		r, err := e.seek(part, ns, k.ID, at)
		if err != nil {
			return false, 0, err
		}
		now := r.now(e)
		if exists = r.exists(now); exists {
			for i, name := range names {
				if col, ok := r.c.byName[name]; ok {
					values[i], present[i] = r.get(col, now)
				}
			}
		}
		e.settle(part)
	}
	return exists, part.fence[at.slot], nil
}

// now is the time that counts for r: only rows that can expire need it.
func (r row) now(e *Engine) int64 {
	if r.c.expires {
		return e.nowMilli()
	}
	return 0
}

// ReadAll appends the present counters of object k in the order they were
// declared. No counters: no such object. The names are the schema's own strings.
func (e *Engine) ReadAll(k counter.Key, dst []counter.Value) ([]counter.Value, Pos, error) {
	at := e.locate(k.ID)
	part := &e.parts[at.part]
	part.mu.Lock()
	defer part.mu.Unlock()
	if ns := e.lookup(k.Namespace); ns != nil && ns.tables[at.part] != nil {
		r, err := e.seek(part, ns, k.ID, at)
		if err != nil {
			return dst, 0, err
		}
		dst = r.values(dst, r.now(e))
		e.settle(part)
	}
	return dst, part.fence[at.slot], nil
}

func checkID(id counter.ID) error {
	if text, ok := id.Text(); ok && len(text) > counter.IDBytesMax {
		return fmt.Errorf("the id has %d bytes, the limit is %d: %w", len(text), counter.IDBytesMax, counter.ErrInvalid)
	}
	return nil
}
