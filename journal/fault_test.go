package journal_test

import (
	"context"
	"errors"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/internal/faultfs"
	. "github.com/tally-counter/tally/journal"
)

// The n-th operation of each kind fails, once or from then on: nothing is
// acknowledged that a crash could take away, and the journal says that it fails.
func TestFailingOperations(t *testing.T) {
	r := seeded(t)
	kinds := []faultfs.Kind{faultfs.Create, faultfs.Rename, faultfs.SyncDir, faultfs.Write, faultfs.Truncate, faultfs.Preallocate, faultfs.Sync, faultfs.Remove, faultfs.Open, faultfs.List, faultfs.Read}
	for _, kind := range kinds {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
			for _, lasting := range []bool{false, true} {
				for nth := int64(1); ; nth++ {
					reached := false
					synctest.Test(t, func(t *testing.T) {
						fs := faultfs.New()
						var count int64
						cut := rand.New(rand.NewSource(r.Int63())) // its own: goroutines of the journal use it
						fs.Inject(func(op faultfs.Op) faultfs.Fault {
							if op.Kind != kind {
								return faultfs.Fault{}
							}
							count++
							if count == nth || lasting && count > nth {
								reached = true
								return faultfs.Fault{Err: errno, Short: cut.Intn(op.Len + 1)}
							}
							return faultfs.Fault{}
						})
						failingRun(t, r, fs)
					})
					if !reached {
						break
					}
				}
			}
		}
	}
}

func failingRun(t *testing.T, r *rand.Rand, fs *faultfs.FS) {
	o := Options{FS: fs, SegmentBytes: 4096}
	j, err := Open("j", o, func(Pos, []byte) error { return nil })
	if err != nil {
		if !errors.Is(err, counter.ErrUnavailable) {
			t.Fatalf("Open: %v, want ErrUnavailable", err)
		}
		return
	}
	var all []entry
	acked := 0
	for i := 0; i < 40; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := j.Admit(ctx)
		cancel()
		if err != nil {
			if !errors.Is(err, counter.ErrUnavailable) || j.Failed() == nil {
				t.Fatalf("Admit: %v (failed: %v), want ErrUnavailable", err, j.Failed())
			}
			time.Sleep(2 * time.Second)
			continue
		}
		rec := randomRecord(r, 400)
		all = append(all, entry{j.Append(rec), string(rec)})
		switch err := j.Wait(all[len(all)-1].end); {
		case err == nil:
			acked = len(all)
		case !errors.Is(err, counter.ErrUnknown):
			t.Fatalf("Wait: %v, want ErrUnknown", err)
		}
	}
	if err := j.Trim(all[acked/2].end); err != nil && !errors.Is(err, counter.ErrUnavailable) {
		t.Fatalf("Trim: %v, want ErrUnavailable", err)
	}
	from := j.Stats().First
	_ = j.Close() // what it says is tested elsewhere
	crashed := fs.Crash(r)
	var got []entry
	j, err = Open("j", Options{FS: crashed, SegmentBytes: 4096, From: from}, func(end Pos, rec []byte) error {
		got = append(got, entry{end, string(rec)})
		return nil
	})
	if err != nil {
		t.Fatalf("after the failure and a crash: %v", err)
	}
	mustClose(t, j)
	for len(all) > 0 && all[0].end <= from {
		all, acked = all[1:], acked-1
	}
	if len(got) < acked || !isPrefix(got, all) {
		t.Fatalf("after the failure and a crash there are %d records; %d were acknowledged", len(got), acked)
	}
}

// A full disk refuses new writes at once, holds waiters for 5 s, and goes on by
// itself when there is room; what was appended is then in the journal, once.
func TestFullDisk(t *testing.T) {
	for _, wait := range []time.Duration{3 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			fs := faultfs.New()
			j, _ := open(t, "j", Options{FS: fs, SegmentBytes: 4096})
			first := j.Append([]byte("before"))
			if err := j.Wait(first); err != nil {
				t.Fatal(err)
			}
			var told atomic.Int64
			j.OnDurable(func(Pos) { told.Add(1) })
			fs.Inject(faultfs.FullAfter(10))
			second := j.Append([]byte("on the full disk"))
			waited := make(chan error)
			start := time.Now()
			go func() { waited <- j.Wait(second) }()
			time.Sleep(time.Second / 2)
			if err := j.Admit(t.Context()); !errors.Is(err, counter.ErrUnavailable) || !strings.Contains(err.Error(), "free space") {
				t.Fatalf("Admit on a full disk: %v", err)
			}
			time.Sleep(wait)
			if wait > 5*time.Second {
				if err := <-waited; !errors.Is(err, counter.ErrUnknown) || time.Since(start) < 5*time.Second {
					t.Fatalf("Wait on a full disk: %v after %v", err, time.Since(start))
				}
				if told.Load() != 1 {
					t.Fatalf("OnDurable was called %d times, want once when waiting ended", told.Load())
				}
				if err := j.Wait(second); !errors.Is(err, counter.ErrUnknown) {
					t.Fatalf("a later Wait: %v", err)
				}
			}
			fs.Inject(nil)
			time.Sleep(2 * time.Second)
			if wait < 5*time.Second {
				if err := <-waited; err != nil {
					t.Fatalf("Wait over a short shortage: %v", err)
				}
			}
			if err := errors.Join(j.Admit(t.Context()), j.Failed(), j.Wait(second)); err != nil {
				t.Fatalf("after space returned: %v", err)
			}
			third := j.Append([]byte("after"))
			if err := j.Wait(third); err != nil {
				t.Fatal(err)
			}
			mustClose(t, j)
			got, err := reopen(fs, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 3 || got[1].rec != "on the full disk" || got[2].end != third {
				t.Fatalf("the journal holds %v", got)
			}
		})
	}
}

// A failed sync is final: the next sync of the same file would say that all is
// well about pages that the kernel dropped.
func TestFailedSyncIsFinal(t *testing.T) {
	fs := faultfs.New()
	j, _ := open(t, "j", Options{FS: fs})
	acked := j.Append([]byte("safe"))
	if err := j.Wait(acked); err != nil {
		t.Fatal(err)
	}
	fs.Inject(faultfs.FailNth(faultfs.Sync, 1, syscall.EIO))
	lost := j.Append([]byte("lost"))
	var wg sync.WaitGroup
	for i := 0; i < 50; i++ {
		wg.Go(func() {
			if err := j.Wait(lost); !errors.Is(err, counter.ErrUnknown) {
				t.Errorf("Wait: %v, want ErrUnknown", err)
			}
		})
	}
	wg.Wait()
	if err := j.Failed(); !errors.Is(err, counter.ErrUnavailable) || !strings.Contains(err.Error(), "restart") {
		t.Errorf("Failed: %v", err)
	}
	if err := j.Admit(t.Context()); !errors.Is(err, counter.ErrUnavailable) {
		t.Errorf("Admit: %v", err)
	}
	after := j.Append([]byte("dropped"))
	if err := j.Wait(after); !errors.Is(err, counter.ErrUnknown) {
		t.Errorf("Wait after the failure: %v", err)
	}
	if err := j.Wait(acked); err != nil {
		t.Errorf("Wait for what was safe before: %v", err)
	}
	if err := j.Sync(); !errors.Is(err, counter.ErrUnknown) {
		t.Errorf("Sync: %v", err)
	}
	if err := j.Close(); !errors.Is(err, counter.ErrUnknown) {
		t.Errorf("Close: %v, want ErrUnknown", err)
	}
	got, err := reopen(fs.Crash(rand.New(rand.NewSource(1))), 0)
	if err != nil || len(got) == 0 || got[0].rec != "safe" {
		t.Fatalf("after restart: %v, %v", got, err)
	}
}

// After a failed sync the page cache may show what the disk never received.
// Opening writes such blocks again, so that a later crash cannot take them.
func TestOpenDoesNotTrustThePageCache(t *testing.T) {
	r := seeded(t)
	fs := faultfs.New()
	j, _ := open(t, "j", Options{FS: fs})
	fs.Inject(faultfs.FailNth(faultfs.Sync, 1, syscall.EIO))
	if err := j.Wait(j.Append(make([]byte, 5000))); !errors.Is(err, counter.ErrUnknown) {
		t.Fatal(err)
	}
	_ = j.Close()
	fs.Inject(nil)
	j, got := open(t, "j", Options{FS: fs}) // the same machine, a new process
	found := len(got)
	crashed := fs.Crash(r)
	mustClose(t, j)
	again, err := reopen(crashed, 0)
	if err != nil || len(again) != found || found != 1 {
		t.Fatalf("replayed %d records, and %d after a crash, %v", found, len(again), err)
	}
}

// Admit holds callers back while the disk is slow, and memory stays bounded.
func TestAdmitBoundsTheBuffer(t *testing.T) {
	fs := faultfs.New()
	const most = 64 << 10
	j, _ := open(t, "j", Options{FS: fs, BufferBytesMax: most})
	rec := make([]byte, 1000)
	gate := make(chan struct{})
	var closeGate sync.Once
	fs.Inject(func(op faultfs.Op) faultfs.Fault {
		if op.Kind == faultfs.Sync {
			<-gate
		}
		return faultfs.Fault{}
	})
	defer closeGate.Do(func() { close(gate) })
	n := 0
	for ; n < 1000; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := j.Admit(ctx)
		cancel()
		if errors.Is(err, counter.ErrBusy) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		j.Append(rec)
	}
	if n < most/1002 || n > 2*most/1002+20 {
		t.Fatalf("%d records of 1,000 bytes were admitted with room for %d in each of two buffers", n, most/1002)
	}
	closeGate.Do(func() { close(gate) })
	if err := j.Admit(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
}

// Hundreds wait at once while others append: everyone is answered, in every mode.
func TestWaitStorm(t *testing.T) {
	for _, mode := range []SyncMode{Always, Interval, Never} {
		j, _ := open(t, t.TempDir(), Options{Sync: mode, SegmentBytes: 64 << 10, Interval: 5 * time.Millisecond})
		var told atomic.Uint64
		j.OnDurable(func(p Pos) {
			if old := told.Swap(uint64(p)); Pos(old) > p {
				t.Errorf("OnDurable went back from %d to %d", old, p)
			}
		})
		var wg sync.WaitGroup
		for g := 0; g < 300; g++ {
			wg.Go(func() {
				for i := 0; i < 20; i++ {
					if err := j.Admit(t.Context()); err != nil {
						t.Error(err)
					}
					end := j.Append([]byte("a record of some bytes"))
					wait := j.Wait
					if i%5 == 0 {
						wait = func(Pos) error { return j.Sync() }
					}
					if err := wait(end); err != nil {
						t.Error(err)
					}
					if (mode == Always || i%5 == 0) && j.Durable() < end {
						t.Errorf("answered at %d with %d durable", end, j.Durable())
					}
				}
			})
		}
		wg.Wait()
		s := j.Stats()
		if s.Lag != int64(s.End-s.Durable) || s.Syncs == 0 || s.SyncP50 > s.SyncP99 || s.SyncP99 > s.SyncMax {
			t.Errorf("%v: %+v", mode, s)
		}
		mustClose(t, j)
	}
}

// Mode Interval syncs by itself, within the interval; an idle journal is left alone.
func TestIntervalAndIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := faultfs.New()
		j, _ := open(t, "j", Options{FS: fs, Sync: Interval, Interval: 300 * time.Millisecond})
		end := j.Append([]byte("soon"))
		time.Sleep(11 * time.Millisecond)
		synctest.Wait()
		if s := j.Stats(); s.Blocks != 1 {
			t.Fatalf("%d blocks written 11 ms after an append", s.Blocks)
		}
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if j.Durable() < end {
			t.Fatal("not synced after the interval")
		}
		time.Sleep(time.Second) // the mark
		synctest.Wait()
		ops := fs.Ops()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := fs.Ops() - ops; n != 0 {
			t.Fatalf("%d operations in an idle hour", n)
		}
		mustClose(t, j)
	})
}
