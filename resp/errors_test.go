package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tally-counter/tally/counter"
)

func TestEveryErrorKindHasAPrefix(t *testing.T) {
	want := map[error]string{
		counter.ErrInvalid: "ERR", counter.ErrNotFound: "NOTFOUND", counter.ErrExists: "EXISTS", counter.ErrOverflow: "ERR", counter.ErrBounds: "ERR",
		counter.ErrConflict: "CONFLICT", counter.ErrTooOld: "TOOOLD", counter.ErrFenced: "FENCED", counter.ErrGap: "GAP", counter.ErrBusy: "BUSY",
		counter.ErrUnavailable: "UNAVAILABLE", counter.ErrCorrupt: "CORRUPT", counter.ErrUnknown: "UNKNOWN", counter.ErrClosed: "UNAVAILABLE",
		counter.ErrLocked: "UNAVAILABLE", counter.ErrReadOnly: "READONLY",
	}
	for _, kind := range counter.Kinds() {
		text := errorText(fmt.Errorf("page 7: %w", kind))
		prefix, rest, _ := strings.Cut(text, " ")
		if want[kind] == "" || prefix != want[kind] {
			t.Errorf("%v is answered %q, want prefix %q", kind, text, want[kind])
		}
		if rest == "" {
			t.Errorf("%v is answered %q, without a text", kind, text)
		}
	}
	if got := errorText(fmt.Errorf("disk: %w: %w", counter.ErrUnavailable, counter.ErrUnknown)); !strings.HasPrefix(got, "UNKNOWN ") {
		t.Errorf("an unknown outcome with a cause is answered %q", got)
	}
}

func TestErrorsStayOnOneLine(t *testing.T) {
	var w writer
	w.error(errorf("ERR a\r\n+OK\r\n%s", strings.Repeat("x", 5000)))
	if s := string(w.b); strings.Count(s, "\n") != 1 || strings.Count(s, "\r") != 1 || len(s) > errorBytesMax+3 {
		t.Errorf("%d bytes with %d line ends", len(s), strings.Count(s, "\n"))
	}
}
