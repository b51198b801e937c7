package resp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tally-counter/tally/counter"
)

// replyError is an error in the words of the Redis protocol: a prefix that
// clients parse, then a text for people.
type replyError string

func (e replyError) Error() string { return string(e) }

// errorf returns a replyError.
func errorf(format string, args ...any) error { return replyError(fmt.Sprintf(format, args...)) }

// The errors that Redis clients know, word for word.
const (
	errSyntax       = replyError("ERR syntax error")
	errNotInteger   = replyError("ERR value is not an integer or out of range")
	errHashInteger  = replyError("ERR hash value is not an integer")
	errNoSuchKey    = replyError("ERR no such key")
	errNoAuth       = replyError("NOAUTH Authentication required.")
	errWrongPass    = replyError("WRONGPASS invalid username-password pair or user is disabled.")
	errExecAbort    = replyError("EXECABORT Transaction discarded because of previous errors.")
	errNestedMulti  = replyError("ERR MULTI calls can not be nested")
	errOutOfMulti   = replyError("ERR Command not allowed inside a transaction")
	errWholeNumbers = replyError("ERR Tally counts whole numbers; use INCRBY or HINCRBY with an integer")
)

// prefixes gives every kind of error the prefix that clients see.
var prefixes = []struct {
	kind   error
	prefix string
}{
	{counter.ErrInvalid, "ERR"},
	{counter.ErrNotFound, "NOTFOUND"},
	{counter.ErrExists, "EXISTS"},
	{counter.ErrOverflow, "ERR"},
	{counter.ErrBounds, "ERR bounds:"},
	{counter.ErrConflict, "CONFLICT"},
	{counter.ErrTooOld, "TOOOLD"},
	{counter.ErrFenced, "FENCED"},
	{counter.ErrGap, "GAP"},
	{counter.ErrBusy, "BUSY"},
	{counter.ErrUnavailable, "UNAVAILABLE"},
	{counter.ErrCorrupt, "CORRUPT"},
	{counter.ErrUnknown, "UNKNOWN"},
	{counter.ErrClosed, "UNAVAILABLE"},
	{counter.ErrLocked, "UNAVAILABLE"},
	{counter.ErrReadOnly, "READONLY"},
}

// errorText is what a client sees of err: prefix and text. ErrUnknown goes first,
// since it is the only kind that does not promise that nothing was changed.
func errorText(err error) string {
	var known replyError
	var broken protocolError
	switch {
	case errors.As(err, &known):
		return string(known)
	case errors.As(err, &broken):
		return "ERR " + broken.Error()
	case errors.Is(err, counter.ErrUnknown):
		return "UNKNOWN " + err.Error()
	case errors.Is(err, counter.ErrOverflow):
		return "ERR " + counter.ErrOverflow.Error() // clients compare this text
	}
	for _, p := range prefixes {
		if errors.Is(err, p.kind) {
			text := strings.TrimSuffix(err.Error(), ": "+p.kind.Error())
			return p.prefix + " " + text
		}
	}
	return "ERR " + err.Error()
}
