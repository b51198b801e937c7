package counter

import "errors"

// The kinds of error. Every error that leaves Tally wraps exactly one of them,
// so a front end maps kinds, not texts. All but ErrUnknown promise that nothing
// was changed.
var (
	ErrInvalid     = errors.New("invalid")        // the request can never succeed as it stands
	ErrNotFound    = errors.New("not found")      // the named thing does not exist
	ErrExists      = errors.New("exists already") // the named thing is there and is not replaced
	ErrOverflow    = errors.New("increment or decrement would overflow")
	ErrBounds      = errors.New("out of bounds")                        // a counter's min or max forbids the add
	ErrConflict    = errors.New("conflict")                             // a token came back with another content
	ErrTooOld      = errors.New("too old")                              // a token outlived the retention
	ErrFenced      = errors.New("fenced")                               // a newer epoch of the session exists
	ErrGap         = errors.New("sequence gap")                         // a session skipped sequence numbers
	ErrBusy        = errors.New("busy")                                 // a bounded resource is full; try again
	ErrUnavailable = errors.New("unavailable")                          // the disk refuses writes; reads go on
	ErrCorrupt     = errors.New("corrupt")                              // stored bytes are damaged
	ErrUnknown     = errors.New("outcome unknown")                      // it may or may not have been applied
	ErrClosed      = errors.New("closed")                               // the engine is shut
	ErrLocked      = errors.New("locked by a process")                  // another process holds the data directory
	ErrReadOnly    = errors.New("undeclared, and the schema is closed") // undeclared name, auto-create is off
)

// Kinds lists every kind, for the tables that map them and the tests that walk
// those tables.
func Kinds() []error {
	return []error{
		ErrInvalid, ErrNotFound, ErrExists, ErrOverflow, ErrBounds, ErrConflict, ErrTooOld, ErrFenced,
		ErrGap, ErrBusy, ErrUnavailable, ErrCorrupt, ErrUnknown, ErrClosed, ErrLocked, ErrReadOnly,
	}
}

// KindOf returns the kind that err wraps, or nil.
func KindOf(err error) error {
	for _, k := range Kinds() {
		if errors.Is(err, k) {
			return k
		}
	}
	return nil
}
