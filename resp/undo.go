package resp

import (
	"fmt"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// undo takes back the sets of a command that must be all or nothing when one of
// them is refused: the engine checks bounds one counter at a time.
type undo struct {
	done []before
}

type before struct {
	key     counter.Key
	name    string
	value   int64
	present bool
}

func (u *undo) set(tx *engine.Tx, k counter.Key, name string, v int64) error {
	was, present, err := tx.Get(k, name)
	if err != nil {
		return err
	}
	if err := tx.Set(k, name, v); err != nil {
		return err
	}
	u.done = append(u.done, before{k, name, was, present})
	return nil
}

// back restores what was, newest first, and returns cause. Only a value that
// stood outside bounds declared after it was set cannot come back.
func (u *undo) back(tx *engine.Tx, cause error) error {
	for i := len(u.done) - 1; i >= 0; i-- {
		b := u.done[i]
		var err error
		if b.present {
			err = tx.Set(b.key, b.name, b.value)
		} else {
			_, err = tx.Clear(b.key, b.name)
		}
		if err != nil {
			return fmt.Errorf("%w; and counter %q of %s was set before and could not be restored to %d (%v): %w",
				cause, b.name, b.key, b.value, err, counter.ErrUnknown)
		}
	}
	return cause
}
