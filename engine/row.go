package engine

import (
	"fmt"
	"math"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/table"
)

// This file changes and reads single rows for every other: hot calls, batches and
// transactions differ only in which locks they hold and where the effects go.
// Every function here wants the partition's lock held.

// row is an object under a held lock.
type row struct {
	part *partition
	ns   *namespace
	c    *columns
	id   counter.ID
	cur  *table.Cursor
}

// seek stands part.cursor on an object and, when it is to be written, makes what
// has expired absent (rec gets the effects).
func (e *Engine) seek(part *partition, ns *namespace, id counter.ID, at place) (row, error) {
	r := row{part, ns, ns.columns.Load(), id, &part.cursor}
	t := e.table(part, ns)
	err := e.ready(part, t, at.key)
	if err == nil {
		err = t.Seek(r.cur, at.key)
	}
	if err != nil {
		return r, fmt.Errorf("object %s of namespace %q: %w", id, ns.name, err)
	}
	return r, nil
}

// expired tells whether the object's time is up.
func (r row) expired(now int64) bool {
	if !r.c.expires {
		return false
	}
	t, ok := r.cur.Get(columnObjectExpiry)
	return ok && t <= now
}

// get reads a counter, absent when its or the object's time is up.
func (r row) get(col table.Column, now int64) (int64, bool) {
	v, ok := r.cur.Get(col)
	if !ok || !r.c.expires {
		return v, ok
	}
	if r.expired(now) || r.counterExpired(col, now) {
		return 0, false
	}
	return v, true
}

func (r row) counterExpired(col table.Column, now int64) bool {
	t, ok := r.cur.Get(columnCounterExpiry + col)
	return ok && t <= now
}

// exists tells whether the object is there: some counter is present and alive.
func (r row) exists(now int64) bool {
	if !r.c.expires {
		return r.cur.Exists()
	}
	return r.cur.Exists() && !r.expired(now) && r.alive(now)
}

// alive tells whether any counter is present and not expired.
func (r row) alive(now int64) bool {
	r.part.cells = r.cur.Cells(r.part.cells[:0])
	for _, c := range r.part.cells {
		if !hidden(c.Col) && !r.counterExpired(c.Col, now) {
			return true
		}
	}
	return false
}

// values appends the present counters in the order they were declared.
func (r row) values(dst []counter.Value, now int64) []counter.Value {
	if !r.cur.Exists() || r.expired(now) {
		return dst
	}
	r.part.cells = r.cur.Cells(r.part.cells[:0])
	for _, c := range r.part.cells {
		if hidden(c.Col) || (r.c.expires && r.counterExpired(c.Col, now)) {
			continue
		}
		dst = append(dst, counter.Value{Counter: r.c.defs[c.Col].Name, Value: c.Value})
	}
	return dst
}

// bury removes what has expired, so that a write begins on what a reader sees.
func (e *Engine) bury(r row, rec *[]byte, now int64) error {
	if !r.c.expires || !r.cur.Exists() {
		return nil
	}
	if r.expired(now) {
		return e.remove(r, rec)
	}
	r.part.cells = r.cur.Cells(r.part.cells[:0])
	for _, c := range r.part.cells {
		if c.Col >= columnCounterExpiry && c.Value <= now {
			if _, err := e.clear(r, rec, c.Col-columnCounterExpiry); err != nil {
				return err
			}
			if !r.cur.Exists() {
				return nil
			}
		}
	}
	return nil
}

// set gives counter col the value v.
func (e *Engine) set(r row, rec *[]byte, col table.Column, v int64) error {
	if err := r.cur.Set(col, v); err != nil {
		return e.poison(err)
	}
	*rec = appendSetOne(*rec, r.ns.number, r.id, col, v)
	return nil
}

// clear makes counter col absent, and its expiry; the object goes with its last counter.
func (e *Engine) clear(r row, rec *[]byte, col table.Column) (was bool, err error) {
	if was, err = r.cur.Clear(col); err != nil {
		return false, e.poison(err)
	}
	if !was {
		return false, nil
	}
	*rec = appendClear(*rec, r.ns.number, r.id, col)
	if !r.c.expires || !r.cur.Exists() {
		return true, nil
	}
	if timed, err := r.cur.Clear(columnCounterExpiry + col); err != nil {
		return false, e.poison(err)
	} else if timed {
		*rec = appendClear(*rec, r.ns.number, r.id, columnCounterExpiry+col)
	}
	if r.cur.Exists() && !r.alive(math.MinInt64) {
		return true, e.remove(r, rec) // only expiries are left
	}
	return true, nil
}

// remove deletes the object.
func (e *Engine) remove(r row, rec *[]byte) error {
	was, err := r.cur.Delete()
	if err != nil {
		return e.poison(err)
	}
	if was {
		*rec = appendDelete(*rec, r.ns.number, r.id)
	}
	return nil
}

// step adds by to v within the bounds of s. On error v is returned unchanged.
func step(s *counter.Schema, v, by int64) (int64, error) {
	sum, err := counter.Sum(v, by)
	if !s.Bounded() {
		if err != nil {
			return v, fmt.Errorf("counter %q stands at %d: %w", s.Name, v, err)
		}
		return sum, nil
	}
	switch {
	case by > 0 && (err != nil || sum > s.Max):
		if s.Policy == counter.Clamp && err == nil || s.Policy == counter.Clamp && s.Max != math.MaxInt64 {
			return max(v, s.Max), nil
		}
		if err != nil && s.Max == math.MaxInt64 {
			return v, fmt.Errorf("counter %q stands at %d: %w", s.Name, v, err)
		}
		return v, fmt.Errorf("counter %q stands at %d and its max is %d, so adding %d is refused; %d fit: %w", s.Name, v, s.Max, by, max(0, room(s.Max, v)), counter.ErrBounds)
	case by < 0 && (err != nil || sum < s.Min):
		if s.Policy == counter.Clamp && err == nil || s.Policy == counter.Clamp && s.Min != math.MinInt64 {
			return min(v, s.Min), nil
		}
		if err != nil && s.Min == math.MinInt64 {
			return v, fmt.Errorf("counter %q stands at %d: %w", s.Name, v, err)
		}
		return v, fmt.Errorf("counter %q stands at %d and its min is %d, so adding %d is refused; %d are left: %w", s.Name, v, s.Min, by, max(0, room(v, s.Min)), counter.ErrBounds)
	}
	return sum, nil
}

// room is a - b, stopping at the largest int64.
func room(a, b int64) int64 {
	d := a - b
	if a > b && d < 0 {
		return math.MaxInt64
	}
	return d
}

// addOne adds to one counter.
func (e *Engine) addOne(part *partition, rec *[]byte, ns *namespace, id counter.ID, at place, col table.Column, by int64) (int64, error) {
	c := ns.columns.Load()
	if c.plain(col) {
		t := e.table(part, ns)
		if err := e.ready(part, t, at.key); err != nil {
			return 0, err
		}
		v, err := t.Add(at.key, col, by)
		if err != nil {
			return v, fmt.Errorf("counter %q of object %s: %w", c.defs[col].Name, id.Clone(), err)
		}
		*rec = appendSetOne(*rec, ns.number, id, col, v)
		return v, nil
	}
	r, err := e.seek(part, ns, id, at)
	if err != nil {
		return 0, err
	}
	if err := e.bury(r, rec, e.nowMilli()); err != nil {
		return 0, err
	}
	old, _ := r.cur.Get(col)
	v, err := step(&c.defs[col], old, by)
	if err != nil {
		return v, err
	}
	return v, e.set(r, rec, col, v)
}

// addAll adds to several counters of one object, all or none. values gets what
// each delta's counter holds after it, or, on error, as it stands.
func (e *Engine) addAll(part *partition, rec *[]byte, ns *namespace, id counter.ID, at place, cols []table.Column, deltas []counter.Delta, values []int64) error {
	r, err := e.seek(part, ns, id, at)
	if err != nil {
		return err
	}
	if err := e.bury(r, rec, e.nowMilli()); err != nil {
		return err
	}
	for i, d := range deltas {
		old, _ := r.cur.Get(cols[i])
		for j := i - 1; j >= 0; j-- { // the same counter may be named twice
			if cols[j] == cols[i] {
				old = values[j]
				break
			}
		}
		v, err := step(&r.c.defs[cols[i]], old, d.By)
		if err != nil {
			for j := range deltas {
				values[j], _ = r.cur.Get(cols[j])
			}
			return err
		}
		values[i] = v
	}
	part.cells = part.cells[:0]
	for i, col := range cols {
		if err := r.cur.Set(col, values[i]); err != nil {
			return e.poison(err)
		}
		part.cells = append(part.cells, table.Cell{Col: col, Value: values[i]})
	}
	*rec = appendSet(*rec, ns.number, id, part.cells)
	return nil
}
