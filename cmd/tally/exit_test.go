package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tally-counter/tally/counter"
)

// TestExitCodes: every kind of error has one code, and every code a meaning.
func TestExitCodes(t *testing.T) {
	meant := map[int]bool{}
	for _, m := range exitMeanings {
		meant[m.code] = m.meaning != ""
	}
	for _, kind := range counter.Kinds() {
		rows := 0
		for _, e := range exitCodes {
			if e.kind == kind {
				rows++
			}
		}
		code := exitCode(fmt.Errorf("somewhere: %w", kind))
		if rows != 1 || code == exitOK || code == exitFailed || !meant[code] {
			t.Errorf("%v: in %d rows of the table, exit code %d", kind, rows, code)
		}
	}
	for _, c := range []struct {
		err  error
		code int
	}{
		{errors.New("other"), exitFailed},
		{context.Canceled, exitInterrupted},
		{fmt.Errorf("%w: %w", counter.ErrUnavailable, counter.ErrUnknown), exitUnknown},
	} {
		if got := exitCode(c.err); got != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.code)
		}
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1000": 1000, "512MiB": 512 << 20, "8GiB": 8 << 30, "8G": 8 << 30, "1.5 gb": 3 << 29, "7b": 7, "2t": 2 << 40} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err != nil || int64(b) != want {
			t.Errorf("%q is %d, %v; want %d", text, b, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1PiB", "9999999999t", "nan", "1 2"} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for %d", text, b)
		}
	}
}
