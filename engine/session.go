package engine

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tally-counter/tally/counter"
)

// Session names one batch of a producer: the epoch that OpenSession gave, and a
// sequence number that rises by one from batch to batch.
type Session struct {
	Producer string
	Epoch    uint64
	Seq      uint64
}

// session is what is remembered of a producer: constant memory, no time limit.
type session struct {
	mu    sync.Mutex // held over a batch: one batch of a producer at a time
	epoch uint64
	seq   uint64
	pos   Pos // of the last batch
	dirty bool
}

func (e *Engine) session(producer string, create bool) (*session, error) {
	if producer == "" || len(producer) > counter.ProducerBytesMax {
		return nil, fmt.Errorf("a producer's name has 1 to %d bytes, this one %d: %w", counter.ProducerBytesMax, len(producer), counter.ErrInvalid)
	}
	e.sessionsMu.Lock()
	defer e.sessionsMu.Unlock()
	s := e.sessions[producer]
	if s == nil {
		if !create {
			return nil, fmt.Errorf("no session of producer %q is open; open one first: %w", producer, counter.ErrNotFound)
		}
		if len(e.sessions) >= e.opts.SessionsMax {
			return nil, fmt.Errorf("%d producers have sessions, the limit; close those that are done: %w", len(e.sessions), counter.ErrBusy)
		}
		s = new(session)
		e.sessions[strings.Clone(producer)] = s
	}
	return s, nil
}

// OpenSession begins a new epoch of a producer and returns it with the sequence
// number of the last batch applied (0: none). Batches of older epochs are
// refused from now on, so two processes that take themselves for the same
// producer cannot both write.
func (e *Engine) OpenSession(producer string) (epoch, lastSeq uint64, pos Pos, err error) {
	if err := e.Admit(); err != nil {
		return 0, 0, 0, err
	}
	s, err := e.session(producer, true)
	if err != nil {
		return 0, 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	s.dirty = true
	s.pos = e.journal.Append(appendSession(nil, producer, s.epoch, s.seq))
	return s.epoch, s.seq, s.pos, nil
}

// CloseSession forgets a producer. ErrNotFound when it has no session.
func (e *Engine) CloseSession(producer string) (Pos, error) {
	if err := e.Admit(); err != nil {
		return 0, err
	}
	s, err := e.session(producer, false)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pos := e.journal.Append(appendSession(nil, producer, 0, 0)) // epoch 0: forgotten
	s.epoch, s.pos = 0, pos                                     // a batch that waits for s.mu finds itself fenced
	e.sessionsMu.Lock()
	delete(e.sessions, producer)
	e.closedSessions = append(e.closedSessions, strings.Clone(producer))
	e.sessionsMu.Unlock()
	return pos, nil
}

// AddSession applies a batch exactly once, as one journal record: after a crash
// all of it counts or none. A sequence number seen before makes every outcome
// Duplicate; one that skips a number is ErrGap; an older epoch is ErrFenced.
// Tokens of single adds are not used here.
func (e *Engine) AddSession(s Session, adds []Add) (Pos, error) {
	if len(adds) > counter.BatchMax {
		return 0, tooMany(len(adds))
	}
	if err := e.Admit(); err != nil {
		return 0, err
	}
	st, err := e.session(s.Producer, false)
	if err != nil {
		return 0, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case s.Epoch != st.epoch:
		return 0, fmt.Errorf("producer %q is at epoch %d, this batch is of epoch %d; open the session anew if it is yours: %w", s.Producer, st.epoch, s.Epoch, counter.ErrFenced)
	case s.Seq > st.seq+1:
		return 0, fmt.Errorf("producer %q: batch %d came after batch %d; send the ones between first: %w", s.Producer, s.Seq, st.seq, counter.ErrGap)
	case s.Seq <= st.seq:
		pos, err := e.readValues(adds)
		return max(pos, st.pos), err
	}
	tx := e.begin(true)
	defer tx.release()
	for i := range adds {
		tx.include(adds[i].Key)
	}
	tx.lock()
	for i := range adds {
		a := &adds[i]
		a.Values = resize(a.Values, len(a.Deltas))
		a.settle(tx.AddDeltas(a.Key, a.Deltas, a.Values))
	}
	tx.rec = appendSession(tx.rec, s.Producer, s.Epoch, s.Seq)
	st.seq, st.dirty = s.Seq, true
	st.pos = tx.commit()
	return st.pos, nil
}

// readValues answers a repeated batch: duplicates, with the values as they stand.
func (e *Engine) readValues(adds []Add) (Pos, error) {
	var last Pos
	for i := range adds {
		a := &adds[i]
		a.Outcome, a.Err = counter.Duplicate, nil
		a.Values = resize(a.Values, len(a.Deltas))
		for j, d := range a.Deltas {
			v, _, pos, err := e.Get(a.Key, d.Counter)
			if err != nil {
				return 0, err
			}
			a.Values[j] = v
			last = max(last, pos)
		}
	}
	return last, nil
}
