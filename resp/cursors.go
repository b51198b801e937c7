package resp

import (
	"math/rand/v2"
	"sync"
)

// cursorsMax is how many places scans may stand at. A scan whose place was
// pushed out by that many newer ones is told to start again.
const cursorsMax = 16 << 10

// cursors remembers where scans stand: a place is a namespace and an id, and the
// protocol's cursor a number. Any goroutine may use it.
type cursors struct {
	mu     sync.Mutex
	first  uint64 // the number of places[0]'s first use: unknown numbers of an earlier process are not taken for ours
	next   uint64
	places []place
}

// newCursors begins at a random number. Numbers stay below 2^53, which every
// client can hold.
func newCursors() *cursors {
	first := 1 + uint64(rand.Int64N(1<<52))
	return &cursors{first: first, next: first}
}

func (t *cursors) put(p place) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.next
	t.next++
	if len(t.places) < cursorsMax {
		t.places = append(t.places, p)
	} else {
		t.places[(n-t.first)%cursorsMax] = p
	}
	return n
}

func (t *cursors) get(n uint64) (place, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n < t.first || n >= t.next || t.next-n > cursorsMax {
		return place{}, false
	}
	return t.places[(n-t.first)%cursorsMax], true
}
