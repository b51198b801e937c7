package resp

import (
	"slices"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// snapshot is everything an object is: RENAME and COPY carry it to another key,
// WATCH compares it with what stands at EXEC.
type snapshot struct {
	values   []counter.Value // empty: no such object
	expiries []int64         // of the counters, unix milliseconds, 0 for none
	expiry   int64           // of the object
}

func takeSnapshot(tx *engine.Tx, k counter.Key) (s snapshot, err error) {
	if s.values, err = tx.Values(k, nil); err != nil {
		return s, err
	}
	if s.expiry, _, err = tx.Expiry(k); err != nil {
		return s, err
	}
	s.expiries = make([]int64, len(s.values))
	for i, v := range s.values {
		if s.expiries[i], _, err = tx.CounterExpiry(k, v.Counter); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s snapshot) exists() bool { return len(s.values) > 0 }

func (s snapshot) equal(o snapshot) bool {
	return s.expiry == o.expiry && slices.Equal(s.values, o.values) && slices.Equal(s.expiries, o.expiries)
}

// replace makes the object of k equal to s, or leaves it as it was.
func (s snapshot) replace(tx *engine.Tx, k counter.Key) error {
	was, err := takeSnapshot(tx, k)
	if err != nil {
		return err
	}
	if err := s.put(tx, k); err != nil {
		if back := was.put(tx, k); back != nil {
			return back
		}
		return err
	}
	return nil
}

func (s snapshot) put(tx *engine.Tx, k counter.Key) error {
	if _, err := tx.Delete(k); err != nil {
		return err
	}
	for i, v := range s.values {
		if err := tx.Set(k, v.Counter, v.Value); err != nil {
			return err
		}
		if s.expiries[i] != 0 {
			if err := tx.SetCounterExpiry(k, v.Counter, s.expiries[i]); err != nil {
				return err
			}
		}
	}
	if s.expiry == 0 {
		return nil
	}
	return tx.SetExpiry(k, s.expiry)
}
