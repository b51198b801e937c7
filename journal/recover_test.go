package journal_test

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/internal/faultfs"
	. "github.com/tally-counter/tally/journal"
)

// written is a journal on a file system in memory and what was acknowledged.
type written struct {
	fs     *faultfs.FS
	all    []entry
	blocks []Pos // ends of the blocks
}

// write appends n random records in blocks of a few and leaves the journal as
// a crash would, or closed cleanly.
func write(t *testing.T, r *rand.Rand, n int, segmentBytes int64, clean bool) written {
	t.Helper()
	w := written{fs: faultfs.New()}
	j, _ := open(t, "j", Options{FS: w.fs, SegmentBytes: segmentBytes})
	// A commit takes what was appended before it began, so blocks are as wide
	// as the appends between two syncs.
	for i := 0; i < n; i++ {
		rec := randomRecord(r, 200)
		w.all = append(w.all, entry{j.Append(rec), string(rec)})
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
		w.blocks = append(w.blocks, w.all[i].end)
	}
	if clean {
		mustClose(t, j)
		return w
	}
	crashed := w.fs.Clone()
	mustClose(t, j)
	w.fs = crashed
	return w
}

// reopen opens w's journal; the records replayed, or the error.
func reopen(fs *faultfs.FS, from Pos) (got []entry, err error) {
	j, err := Open("j", Options{FS: fs, SegmentBytes: 4096, From: from}, func(end Pos, rec []byte) error {
		got = append(got, entry{end, string(rec)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return got, j.Close()
}

func isPrefix(got, want []entry) bool {
	return len(got) <= len(want) && slices.Equal(got, want[:len(got)])
}

// A segment cut short at any byte: what is left is a beginning of what was
// written, nothing is made up, and the journal goes on from there.
func TestTornTailAtEveryByte(t *testing.T) {
	r := seeded(t)
	w := write(t, r, 12, 4096, false)
	names := w.fs.Names()
	last := names[len(names)-1]
	data := w.fs.Content(last)
	for size := 40; size <= len(data); size++ {
		fs := w.fs.Clone()
		fs.SetContent(last, data[:size])
		got, err := reopen(fs, 0)
		if err != nil || !isPrefix(got, w.all) {
			t.Fatalf("%d bytes left: %d records, %v", size, len(got), err)
		}
		again, err := reopen(fs, 0)
		if err != nil || !slices.Equal(again, got) {
			t.Fatalf("%d bytes left: %d records at first, then %d, %v", size, len(got), len(again), err)
		}
	}
}

// What is cut off is gone from the file: it cannot be read as a block later.
func TestTornTailIsErased(t *testing.T) {
	r := seeded(t)
	w := write(t, r, 5, 4096, false)
	name := w.fs.Names()[0]
	data := w.fs.Content(name)
	w.fs.SetContent(name, append(data[:len(data)-1], randomRecord(r, 900)...))
	j, _ := open(t, "j", Options{FS: w.fs, SegmentBytes: 4096})
	report, err := Verify(w.fs.Clone(), "j", 0, nil)
	if err != nil || report.TornBytes != 0 || len(report.Problems) > 0 {
		t.Fatalf("after Open: %+v, %v", report, err)
	}
	mustClose(t, j)
}

// One bit flips in any byte of any file. A journal that was closed cleanly, or
// idle for a moment, detects it or loses nothing; after a crash right behind a
// commit only that last block can be taken for torn.
func TestFlippedBitInEveryByte(t *testing.T) {
	r := seeded(t)
	for _, state := range []string{"clean", "idle", "crashed"} {
		t.Run(state, func(t *testing.T) {
			var w written
			synctest.Test(t, func(t *testing.T) {
				w = write(t, r, 40, 4096, state == "clean")
				if state == "idle" { // open it again and stay idle, so that a mark is written
					j, _ := open(t, "j", Options{FS: w.fs, SegmentBytes: 4096})
					time.Sleep(time.Second)
					idle := w.fs.Clone()
					mustClose(t, j)
					w.fs = idle
				}
			})
			mayLose := 0
			if state == "crashed" {
				mayLose = 1
			}
			detected, harmless := 0, 0
			for _, name := range w.fs.Names() {
				data := w.fs.Content(name)
				for at := range data {
					data[at] ^= 1 << r.Intn(8)
					fs := w.fs.Clone()
					fs.SetContent(name, data)
					report, verr := Verify(fs, "j", 0, nil)
					got, err := reopen(fs, 0)
					switch {
					case err != nil && !errors.Is(err, counter.ErrCorrupt):
						t.Fatalf("%s byte %d: %v, want ErrCorrupt", name, at, err)
					case err != nil:
						detected++
						if base := strings.TrimPrefix(name, "j/"); !strings.Contains(err.Error(), base) {
							t.Fatalf("%s byte %d: the error does not name the file: %v", name, at, err)
						}
						if verr != nil || len(report.Problems) == 0 {
							t.Fatalf("%s byte %d: Open refuses and Verify finds nothing: %v", name, at, verr)
						}
					case !isPrefix(got, w.all) || len(got) < len(w.all)-mayLose:
						t.Fatalf("%s byte %d: %d of %d records came back and nobody noticed", name, at, len(got), len(w.all))
					default:
						harmless++
					}
					data[at] = w.fs.Content(name)[at]
				}
			}
			t.Logf("%d flips detected, %d in space that holds nothing", detected, harmless)
		})
	}
}

// A segment, or the end of the last one, that goes missing is noticed.
func TestMissingParts(t *testing.T) {
	r := seeded(t)
	w := write(t, r, 80, 4096, true)
	var segs []string
	for _, name := range w.fs.Names() {
		if strings.HasSuffix(name, ".tj") {
			segs = append(segs, name)
		}
	}
	if len(segs) < 3 {
		t.Fatalf("only %d segments", len(segs))
	}
	end := w.all[len(w.all)-1].end
	refuse := func(what string, from Pos, change func(fs *faultfs.FS)) {
		t.Helper()
		fs := w.fs.Clone()
		change(fs)
		if report, err := Verify(fs, "j", from, nil); err != nil || len(report.Problems) == 0 {
			t.Errorf("%s: Verify finds nothing: %v", what, err)
		}
		if _, err := reopen(fs, from); !errors.Is(err, counter.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", what, err)
		}
	}
	for i, name := range segs {
		refuse(fmt.Sprintf("segment %d of %d is gone", i, len(segs)), 0, func(fs *faultfs.FS) { fs.SetContent(name, nil) })
		refuse(fmt.Sprintf("segment %d of %d is empty", i, len(segs)), 0, func(fs *faultfs.FS) { fs.SetContent(name, []byte{}) })
	}
	last := segs[len(segs)-1]
	refuse("the last block is gone after a clean shutdown", 0, func(fs *faultfs.FS) {
		data := fs.Content(last)
		fs.SetContent(last, data[:len(data)-1])
	})
	refuse("replay is to start behind the end", end+1, func(*faultfs.FS) {})
	refuse("every file is gone and replay is to start behind 0", end, func(fs *faultfs.FS) {
		for _, name := range fs.Names() {
			fs.SetContent(name, nil)
		}
	})
	other := write(t, r, 80, 4096, true)
	refuse("a segment of another database", 0, func(fs *faultfs.FS) {
		for _, name := range other.fs.Names() {
			if strings.HasSuffix(name, ".tj") {
				fs.SetContent(last, nil)
				fs.SetContent(name, other.fs.Content(name))
			}
		}
	})
	if report, err := Verify(w.fs, "j", 0, nil); err != nil || len(report.Problems) > 0 || report.Records != int64(len(w.all)) || report.End != end || !report.Clean {
		t.Errorf("an undamaged journal: %+v, %v", report, err)
	}
	if _, err := reopen(w.fs.Clone(), w.all[3].end-1); !errors.Is(err, counter.ErrCorrupt) {
		t.Errorf("replay from inside a record: %v, want ErrCorrupt", err)
	}
	if got, err := reopen(w.fs.Clone(), end); err != nil || len(got) != 0 {
		t.Errorf("replay from the end: %d records, %v", len(got), err)
	}
}

// What Verify names, Cut drops: the journal opens with what was before the
// damage, and every dropped byte is still there.
func TestCutIsTheWayOut(t *testing.T) {
	r := seeded(t)
	w := write(t, r, 60, 4096, true)
	for _, name := range w.fs.Names() {
		if !strings.HasSuffix(name, ".tj") {
			continue
		}
		size := len(w.fs.Content(name))
		for _, at := range []int{5, 30, 39, 45, 60, 100, size / 2} {
			fs := w.fs.Clone()
			data := fs.Content(name)
			data[at] ^= 0x10
			fs.SetContent(name, data)
			report, err := Verify(fs, "j", 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Problems) == 0 {
				continue // space that holds nothing
			}
			end, err := Cut(fs, "j", report.Problems[0].Pos)
			if err != nil {
				t.Fatalf("%s byte %d: Cut: %v", name, at, err)
			}
			got, err := reopen(fs, 0)
			if err != nil || !isPrefix(got, w.all) || end != report.Problems[0].Pos {
				t.Fatalf("%s byte %d: after Cut(%d) = %d: %d records, %v", name, at, report.Problems[0].Pos, end, len(got), err)
			}
			if len(got) < len(w.all) && w.all[len(got)].end <= report.Problems[0].Pos {
				t.Fatalf("%s byte %d: Cut dropped record %d, which was good", name, at, len(got))
			}
			if !slices.ContainsFunc(fs.Names(), func(n string) bool {
				return strings.HasSuffix(n, ".cut") && slices.Equal(fs.Content(n), data)
			}) {
				t.Fatalf("%s byte %d: the damaged file was not kept: %v", name, at, fs.Names())
			}
		}
	}
	// The page store knows more than the journal holds: take it up there.
	fs := w.fs.Clone()
	beyond := w.all[len(w.all)-1].end + 1000
	if end, err := Cut(fs, "j", beyond); err != nil || end != beyond {
		t.Fatalf("Cut(%d) = %d, %v", beyond, end, err)
	}
	if got, err := reopen(fs, beyond); err != nil || len(got) != 0 {
		t.Fatalf("after a cut behind the end: %d records, %v", len(got), err)
	}
	// Inside a block: the block goes.
	fs = w.fs.Clone()
	if end, err := Cut(fs, "j", w.all[30].end+1); err != nil || end != w.all[30].end {
		t.Fatalf("Cut inside block 31 = %d, %v; want %d", end, err, w.all[30].end)
	}
}

// A crash at any operation, many times over one journal: what was acknowledged
// is there, and what is there was appended, in order.
func TestCrashes(t *testing.T) {
	r := seeded(t)
	for _, mode := range []SyncMode{Always, Interval, Never} {
		t.Run(mode.String(), func(t *testing.T) {
			for run := 0; run < 60; run++ {
				synctest.Test(t, func(t *testing.T) { crashes(t, r, mode, run) })
			}
		})
	}
}

func crashes(t *testing.T, r *rand.Rand, mode SyncMode, run int) {
	fs := faultfs.New()
	var all []entry // appended and, from round to round, found
	for round := 0; round < 8; round++ {
		j, got := open(t, "j", Options{FS: fs, SegmentBytes: 4096, Sync: mode, Interval: 40 * time.Millisecond})
		if !isPrefix(got, all) {
			t.Fatalf("run %d round %d: %d records are no beginning of the %d appended", run, round, len(got), len(all))
		}
		all = got
		var durable Pos // at the crash
		at := fs.Ops() + r.Int63n(80)
		fs.Inject(func(op faultfs.Op) faultfs.Fault {
			if op.N == at {
				durable = j.Durable()
			}
			return faultfs.Fault{}
		})
		fs.CrashAt(at, rand.New(rand.NewSource(r.Int63())))
		for i := 0; i < 40; i++ {
			rec := randomRecord(r, 300)
			all = append(all, entry{j.Append(rec), string(rec)})
			switch r.Intn(8) {
			case 0:
				if err := j.Sync(); err != nil {
					t.Fatal(err)
				}
			case 1, 2, 3: // time enough to write a block, maybe without a sync
				time.Sleep(time.Duration(r.Intn(12)) * time.Millisecond)
			case 4:
				time.Sleep(time.Duration(r.Intn(150)) * time.Millisecond)
			}
		}
		mustClose(t, j)
		if crashed := fs.Crashed(); crashed != nil {
			fs = crashed
		} else {
			fs, durable = fs.Crash(r), all[len(all)-1].end
		}
		j, got = open(t, "j", Options{FS: fs, SegmentBytes: 4096, Sync: mode})
		if !isPrefix(got, all) || len(got) < len(all) && all[len(got)].end <= durable {
			t.Fatalf("run %d round %d: %d records after the crash, appended were %d, durable all before %d", run, round, len(got), len(all), durable)
		}
		all = got
		mustClose(t, j)
	}
}

// An opening that itself crashes at any operation loses nothing.
func TestCrashWhileOpening(t *testing.T) {
	r := seeded(t)
	w := write(t, r, 30, 4096, true)
	names := w.fs.Names()
	torn := w.fs.Clone()
	torn.SetContent("j/clean", nil)
	last := names[len(names)-2]
	torn.SetContent(last, append(torn.Content(last), "half a block"...))
	for _, start := range []*faultfs.FS{w.fs, torn, faultfs.New()} {
		for n := int64(0); ; n++ {
			fs := start.Clone()
			fs.CrashAt(n, rand.New(rand.NewSource(r.Int63())))
			want, err := reopen(fs, 0)
			if err != nil {
				t.Fatal(err)
			}
			crashed := fs.Crashed()
			if crashed == nil {
				break
			}
			if got, err := reopen(crashed, 0); err != nil || !slices.Equal(got, want) {
				t.Fatalf("crash at operation %d: %d records, %v; want %d", n, len(got), err, len(want))
			}
		}
	}
}
