package engine

import (
	"fmt"
	"strings"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/table"
)

func cloneKey(k table.Key) table.Key {
	k.Text = strings.Clone(k.Text)
	return k
}

// scanned is an object that a scan has read ahead.
type scanned struct {
	id     counter.ID
	values []counter.Value
}

// stream reads one partition's objects of a namespace in id order, some at a time.
type stream struct {
	ahead []scanned
	from  table.Key
	end   bool
}

// Scan calls fn for the objects of namespace ns with id ≥ from, in id order, at
// most limit of them, until fn returns false. next is the id to go on from when
// more is true. Objects that are added or deleted meanwhile may or may not be
// seen; every other is seen once. ids and values may be kept.
//
// Cost: what it visits, and some rows of every partition for each call.
func (e *Engine) Scan(ns string, from counter.ID, limit int, fn func(id counter.ID, values []counter.Value) bool) (next counter.ID, more bool, pos Pos, err error) {
	n := e.lookup(ns)
	if n == nil {
		return counter.ID{}, false, 0, nil
	}
	streams := make([]stream, len(e.parts))
	for p := range streams {
		streams[p].from = e.scanStart(p, from)
	}
	step := limit/len(e.parts)*5/4 + 4
	for {
		best := -1
		for p := range streams {
			s := &streams[p]
			if len(s.ahead) == 0 && !s.end {
				last, err := e.readAhead(n, p, s, from, min(step, 1024))
				if err != nil {
					return counter.ID{}, false, 0, err
				}
				pos = max(pos, last)
			}
			if len(s.ahead) > 0 && (best < 0 || s.ahead[0].id.Compare(streams[best].ahead[0].id) < 0) {
				best = p
			}
		}
		if best < 0 {
			return counter.ID{}, false, pos, nil
		}
		s := &streams[best]
		if limit == 0 {
			return s.ahead[0].id, true, pos, nil
		}
		it := s.ahead[0]
		s.ahead = s.ahead[1:]
		limit--
		if !fn(it.id, it.values) {
			limit = 0
		}
	}
}

// scanStart is the lowest key that partition p can hold for ids ≥ from.
func (e *Engine) scanStart(p int, from counter.ID) table.Key {
	if text, ok := from.Text(); ok {
		return table.Key{Text: text, IsText: true}
	}
	n, _ := from.Int()
	return table.Key{Num: n >> e.partBits} // neighbours below from are skipped by readAhead
}

// readAhead fills s with up to n objects of partition p, under its lock.
func (e *Engine) readAhead(ns *namespace, p int, s *stream, from counter.ID, n int) (Pos, error) {
	part := &e.parts[p]
	part.mu.Lock()
	defer part.mu.Unlock()
	t := ns.tables[p]
	if t == nil || ns.gone {
		s.end = true
		return 0, nil
	}
	if err := e.catchUp(part, -1); err != nil {
		return 0, err
	}
	r := row{part: part, ns: ns, c: ns.columns.Load()}
	now := e.nowMilli()
	var pos Pos
	looked := 0
	s.end = true
	err := t.Scan(s.from, func(k table.Key, cur *table.Cursor) bool {
		if looked++; len(s.ahead) == n || looked > 4*n+64 {
			s.from, s.end = cloneKey(k), false
			return false
		}
		r.cur = cur
		id := e.idOf(p, k)
		if id.Compare(from) < 0 {
			return true
		}
		values := r.values(nil, now)
		if len(values) == 0 {
			return true // expired
		}
		id = id.Clone()
		s.ahead = append(s.ahead, scanned{id, values})
		pos = max(pos, part.fence[e.locate(id).slot])
		return true
	})
	if err != nil {
		return 0, fmt.Errorf("namespace %q: %w", ns.name, err)
	}
	e.settle(part)
	return pos, nil
}
