package remote

import (
	"errors"
	"testing"

	"github.com/tally-counter/tally/counter"
)

// TestReplyErrors: a reply that a server makes of a kind is that kind again, but
// for those that only mean something where the data is.
func TestReplyErrors(t *testing.T) {
	replies := map[error]string{
		counter.ErrInvalid:     "ERR syntax error",
		counter.ErrNotFound:    "NOTFOUND there is no namespace 'x'",
		counter.ErrExists:      "EXISTS it is there",
		counter.ErrOverflow:    "ERR increment or decrement would overflow",
		counter.ErrBounds:      "ERR bounds: it stands at 3",
		counter.ErrConflict:    "CONFLICT another content",
		counter.ErrTooOld:      "TOOOLD by an hour",
		counter.ErrFenced:      "FENCED a newer epoch",
		counter.ErrGap:         "GAP batch 3 after 1",
		counter.ErrBusy:        "BUSY full",
		counter.ErrUnavailable: "UNAVAILABLE the disk is full",
		counter.ErrCorrupt:     "CORRUPT page 7",
		counter.ErrUnknown:     "UNKNOWN it may have been applied",
		counter.ErrReadOnly:    "READONLY counter x is not declared",
		counter.ErrClosed:      "", // a server says UNAVAILABLE
		counter.ErrLocked:      "", // a server that cannot open its data does not answer
	}
	for _, kind := range counter.Kinds() {
		reply, listed := replies[kind]
		if !listed {
			t.Errorf("kind %q is not in the list", kind)
		}
		if reply == "" {
			continue
		}
		if err := replyError(reply); !errors.Is(err, kind) {
			t.Errorf("%q is %v, want kind %q", reply, err, kind)
		}
	}
	for _, reply := range []string{"NOAUTH Authentication required.", "WRONGPASS invalid username-password pair or user is disabled.", "", "x"} {
		if err := replyError(reply); !errors.Is(err, counter.ErrInvalid) {
			t.Errorf("%q is %v", reply, err)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	c := New(Options{Addr: "127.0.0.1:1"})
	defer c.Close()
	_, err := c.Stats(t.Context())
	if !errors.Is(err, counter.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}
