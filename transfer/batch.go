package transfer

import (
	"context"

	"github.com/tally-counter/tally/counter"
)

// Item is one add, or one object's counters to set, made from a row.
type Item struct {
	Line   int    // of the row; 0: none
	Raw    string // the row as it stands
	Key    counter.Key
	Deltas []counter.Delta // what to add; of values, what to set
	Token  string          // "": none
}

// Refusal is an item that was not taken.
type Refusal struct {
	Item int   // index into Batch.Items
	Err  error // why
}

// Batch is what goes to the target in one request.
type Batch struct {
	Kind  Kind
	Items []Item

	// Of a session; Producer "" otherwise.
	Producer string
	Epoch    uint64
	Seq      uint64

	// Answer: every item is one of these.
	Applied   int
	Duplicate int       // counted before; nothing changed
	Refused   []Refusal // by rising index
}

// Target takes batches. Its error kinds are those of package counter; the kinds
// that may pass (busy, unavailable, unknown) are worth another attempt.
type Target interface {
	// OpenSession raises the producer's epoch and says which batch was applied last.
	OpenSession(ctx context.Context, producer string) (epoch, lastSeq uint64, err error)

	// Send applies batches in order, in one round trip where that is possible, and
	// fills in their answers. done batches were answered, all
	// durably; err says why the next was not.
	Send(ctx context.Context, batches []*Batch) (done int, err error)
}
