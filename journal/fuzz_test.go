package journal_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/internal/faultfs"
	. "github.com/tally-counter/tally/journal"
)

// FuzzReplay opens a journal whose only segment is any bytes: it may be
// refused, but nothing panics, memory stays in proportion, and what opens opens
// again with the same records.
func FuzzReplay(f *testing.F) {
	fs := faultfs.New()
	j, err := Open("j", Options{FS: fs, SegmentBytes: 4096}, func(Pos, []byte) error { return nil })
	if err != nil {
		f.Fatal(err)
	}
	for _, rec := range []string{"one", "two", strings.Repeat("three", 50)} {
		j.Append([]byte(rec))
		if err := j.Sync(); err != nil {
			f.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	segment := fs.Content("j/0000000000000000.tj")
	f.Add(segment)
	f.Add(segment[:len(segment)-7])
	f.Add(segment[:40])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		fs := faultfs.New()
		fs.SetContent("j/0000000000000000.tj", data)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		report, err := Verify(fs, "j", 0, nil)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatalf("Verify: %v", err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20+8*uint64(len(data)) {
			t.Fatalf("%d bytes of memory for a segment of %d", used, len(data))
		}
		first, err := reopen(fs, 0)
		if err != nil {
			if kind := counter.KindOf(err); kind != counter.ErrCorrupt && kind != counter.ErrInvalid {
				t.Fatalf("Open: %v", err)
			}
			if len(report.Problems) == 0 {
				t.Fatalf("Open refuses, Verify finds nothing: %v", err)
			}
			if _, err := Cut(fs, "j", report.Problems[0].Pos); err != nil {
				t.Fatalf("Cut: %v", err)
			}
			if _, err := reopen(fs, 0); err != nil && !errors.Is(err, counter.ErrCorrupt) {
				t.Fatalf("Open after Cut: %v", err)
			}
			return
		}
		again, err := reopen(fs, 0)
		if err != nil || len(again) != len(first) {
			t.Fatalf("%d records, then %d, %v", len(first), len(again), err)
		}
	})
}
