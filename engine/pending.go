package engine

import (
	"fmt"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/table"
)

// A restart must serve at once, however long the journal's tail. So recovery
// reads the tail but no pages: effects on rows whose pages are only on disk are
// kept, in order, per chunk of the table's directory. Whoever first asks for a
// row of the chunk, or the keeper that works through the rest, applies them.
// Pages are split, merged and moved inside one chunk only, so a chunk that nobody
// has asked for stays as the checkpoint left it.
type pendingEffects map[*table.Table]map[string][]byte // by chunk name; effects as in a record

// postpone keeps an effect on key k of t for later, if its page is not in memory.
func (part *partition) postpone(t *table.Table, k table.Key, effect []byte) bool {
	name, resident := t.ChunkName(k, part.name[:0])
	part.name = name
	if resident {
		return false
	}
	if part.pending == nil {
		part.pending = pendingEffects{}
	}
	chunks := part.pending[t]
	if chunks == nil {
		chunks = map[string][]byte{}
		part.pending[t] = chunks
	}
	chunks[string(name)] = append(chunks[string(name)], effect...)
	return true
}

// ready applies what is pending for the chunk of key k. The caller holds the
// partition's lock.
func (e *Engine) ready(part *partition, t *table.Table, k table.Key) error {
	if len(part.pending) == 0 {
		return nil
	}
	chunks := part.pending[t]
	if len(chunks) == 0 {
		return nil
	}
	part.name, _ = t.ChunkName(k, part.name[:0])
	effects, ok := chunks[string(part.name)]
	if !ok {
		return nil
	}
	return e.applyPending(part, t, string(part.name), effects)
}

// readyAll is ready for many keys.
func (e *Engine) readyAll(part *partition, t *table.Table, keys []table.Key) error {
	if len(part.pending) == 0 {
		return nil
	}
	for _, k := range keys {
		if err := e.ready(part, t, k); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) applyPending(part *partition, t *table.Table, chunk string, effects []byte) error {
	r := effectReader{b: effects}
	var f effect
	for r.next(&f) {
		if err := applyTo(t, &part.cursor, e.locate(f.id).key, &f); err != nil {
			return fmt.Errorf("recovery of object %s: %w", f.id, err)
		}
	}
	if r.err != nil {
		return r.err
	}
	chunks := part.pending[t]
	delete(chunks, chunk)
	if len(chunks) == 0 {
		delete(part.pending, t)
	}
	return nil
}

// applyTo brings a row to what an effect states.
func applyTo(t *table.Table, cur *table.Cursor, k table.Key, f *effect) (err error) {
	if err := t.Seek(cur, k); err != nil {
		return err
	}
	switch f.op {
	case opDelete:
		_, err = cur.Delete()
	case opClear:
		for _, c := range f.cells {
			if _, err = cur.Clear(c.Col); err != nil {
				break
			}
		}
	default:
		for _, c := range f.cells {
			if err = cur.Set(c.Col, c.Value); err != nil {
				break
			}
		}
	}
	return err
}

// catchUp applies up to n pending chunks of a partition, -1: all. The caller holds its lock.
func (e *Engine) catchUp(part *partition, n int) error {
	for t, chunks := range part.pending {
		for name, effects := range chunks {
			if n == 0 {
				return nil
			}
			n--
			if err := e.applyPending(part, t, name, effects); err != nil {
				return err
			}
			e.settle(part)
		}
	}
	return nil
}

// catchUpAll applies everything that is pending, a chunk under each lock, until
// stop is closed.
func (e *Engine) catchUpAll(stop <-chan struct{}) error {
	for i := range e.parts {
		part := &e.parts[i]
		for more := true; more; {
			part.mu.Lock()
			err := e.catchUp(part, 1)
			more = len(part.pending) > 0
			part.mu.Unlock()
			if err != nil {
				return err
			}
			select {
			case <-stop:
				return fmt.Errorf("the engine is shut: %w", counter.ErrClosed)
			default:
			}
		}
	}
	return nil
}
