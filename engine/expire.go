package engine

import (
	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/table"
)

const sweepRows = 256 // looked at under one lock; a round looks at 16 times as many

// sweep removes expired objects and counters that nobody asks for: it walks the
// namespaces that have expiries, a few thousand rows a round, so it never holds
// up others; readers do not wait for it, they see what is expired as absent.
type sweep struct {
	ns   uint32 // where the walk stands
	part int
	from table.Key
}

func (s *sweep) step(e *Engine) {
	if e.writable() != nil {
		return
	}
	for budget := 16; budget > 0; budget-- {
		ns := s.namespace(e)
		if ns == nil {
			return
		}
		if done, err := s.rows(e, ns); err != nil {
			e.log.Warn("expired objects were not removed", "namespace", ns.name, "error", err)
			return
		} else if !done {
			continue
		}
		s.from = table.Key{}
		if s.part++; s.part == len(e.parts) {
			s.part, s.ns = 0, ns.number+1
			return
		}
	}
}

// namespace is the one to go on with: the next in use that has expiries.
func (s *sweep) namespace(e *Engine) *namespace {
	var first, next *namespace
	for _, ns := range *e.names.Load() {
		if !ns.columns.Load().expires {
			continue
		}
		if first == nil || ns.number < first.number {
			first = ns
		}
		if ns.number >= s.ns && (next == nil || ns.number < next.number) {
			next = ns
		}
	}
	if next == nil {
		next = first
	}
	if next != nil && next.number != s.ns {
		s.ns, s.part, s.from = next.number, 0, table.Key{}
	}
	return next
}

// rows looks at the next rows of a table; done is true at its end.
func (s *sweep) rows(e *Engine, ns *namespace) (done bool, err error) {
	part := &e.parts[s.part]
	part.mu.Lock()
	defer part.mu.Unlock()
	t := ns.tables[s.part]
	if t == nil || ns.gone {
		return true, nil
	}
	if len(part.pending) > 0 {
		return true, nil // the keeper has older work to finish first
	}
	now := e.nowMilli()
	var due []counter.ID
	seen := 0
	done = true
	err = t.Scan(s.from, func(k table.Key, cur *table.Cursor) bool {
		if seen++; seen > sweepRows {
			s.from, done = cloneKey(k), false
			return false
		}
		part.cells = cur.Cells(part.cells[:0])
		for _, c := range part.cells {
			if hidden(c.Col) && c.Value <= now {
				due = append(due, e.idOf(s.part, k).Clone())
				break
			}
		}
		return true
	})
	if err != nil {
		return false, err
	}
	part.rec = part.rec[:0]
	for _, id := range due {
		r, err := e.seek(part, ns, id, e.locate(id))
		if err == nil {
			err = e.bury(r, &part.rec, now)
		}
		if err != nil {
			return false, err
		}
	}
	if len(part.rec) > 0 {
		pos := e.commit(part)
		for _, id := range due {
			part.fence[e.locate(id).slot] = pos
		}
	}
	return done, nil
}
