package engine

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/internal/faultfs"
)

// powerLoss takes what a loss of power leaves at one moment, between before and
// after, closes e and opens that.
func powerLoss(t *testing.T, e *Engine, disk *faultfs.FS, r *rand.Rand, o Options, before, after func()) *Engine {
	t.Helper()
	e.keeper.checkpointMu.Lock()
	before()
	o.JournalFS = disk.Crash(r)
	after()
	pages := filepath.Join(t.TempDir(), "pages")
	for { // the page store syncs all that it says it holds; only compactions move files now
		listed := listing(e.pagesDir())
		if err := os.CopyFS(pages, os.DirFS(e.pagesDir())); err == nil && listing(e.pagesDir()) == listed {
			break
		}
		if err := os.RemoveAll(pages); err != nil {
			t.Fatal(err)
		}
	}
	e.keeper.checkpointMu.Unlock()
	e.Close()
	if err := errors.Join(os.RemoveAll(e.pagesDir()), os.Rename(pages, e.pagesDir())); err != nil {
		t.Fatal(err)
	}
	return open(t, e.dir, o)
}

// A machine that loses power keeps what was acknowledged: the journal's disk
// drops, at a moment nobody chose, what was not synced, the page store stands as
// it stood, and every sum lies between what was acknowledged and what was tried.
func TestPowerLossKeepsWhatWasAcknowledged(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	const objects, workers = 40, 4
	key := func(n int) counter.Key { return counter.Key{Namespace: "post", ID: counter.IntID(uint64(n))} }
	var kept, lost int64
	rounds := 25
	if testing.Short() {
		rounds = 6
	}
	for round := range rounds {
		disk := faultfs.New()
		o := Options{JournalFS: disk, SegmentBytes: 16 << 10}
		e := open(t, t.TempDir(), o)
		var tried, acked [objects]atomic.Int64
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				r := rand.New(rand.NewSource(seed + int64(w)))
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					n := r.Intn(objects)
					tried[n].Add(1)
					var pos Pos
					var err error
					if i%3 == 0 {
						a := []Add{{Key: key(n), Deltas: []counter.Delta{{Counter: "like", By: 1}}, Token: fmt.Sprint(w, i)}}
						pos, err = e.AddBatch(a)
						err = errors.Join(err, a[0].Err)
					} else {
						_, pos, err = e.Add(key(n), "like", 1)
					}
					if err == nil {
						err = e.Wait(pos)
					}
					if err != nil {
						t.Error(err)
						return
					}
					acked[n].Add(1)
				}
			})
		}
		for range r.Intn(4) {
			time.Sleep(time.Duration(r.Intn(4000)) * time.Microsecond)
			if err := e.Checkpoint(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Duration(r.Intn(8000)) * time.Microsecond)

		var before, after [objects]int64
		c := powerLoss(t, e, disk, r, o, func() {
			for n := range before {
				before[n] = acked[n].Load()
			}
		}, func() {
			for n := range after {
				after[n] = tried[n].Load()
			}
			close(stop)
			wg.Wait()
		})
		for n := range objects {
			v, _, _, err := c.Get(key(n), "like")
			if err != nil {
				t.Fatal(err)
			}
			if v < before[n] || v > after[n] {
				t.Fatalf("round %d: object %d is %d after the crash, %d were acknowledged, %d tried", round, n, v, before[n], after[n])
			}
			kept += v
			lost += after[n] - v
		}
		c.Close()
	}
	t.Logf("%d adds were kept, %d that nobody was told of were lost", kept, lost)
	if kept < 1000 {
		t.Errorf("only %d adds were kept: too few to mean anything", kept)
	}
}

// A sync that fails ends acknowledging, for good; what was acknowledged is read
// and recovered, what was in flight is called unknown and is not shown.
func TestFailedSyncStopsAcknowledging(t *testing.T) {
	disk := faultfs.New()
	dir := t.TempDir()
	e := open(t, dir, Options{JournalFS: disk})
	mustAdd(t, e, "quiet", "value", 1, 1)
	for i := range 10 {
		mustAdd(t, e, "busy", "value", 1, int64(i+1))
	}
	disk.Inject(func(op faultfs.Op) faultfs.Fault {
		if op.Kind == faultfs.Sync {
			return faultfs.Fault{Err: syscall.EIO}
		}
		return faultfs.Fault{}
	})
	_, pos, err := e.Add(key("busy"), "value", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Wait(pos); !errors.Is(err, counter.ErrUnknown) {
		t.Fatalf("an add whose sync failed: %v", err)
	}
	disk.Inject(nil) // the disk is well again; what it lost is not known
	if _, _, err := e.Add(key("busy"), "value", 1); !errors.Is(err, counter.ErrUnavailable) {
		t.Fatalf("an add after a failed sync: %v", err)
	}
	_, _, pos, err = e.Get(key("busy"), "value")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Wait(pos); err == nil {
		t.Error("a value that may not be on disk is shown")
	}
	v, _, pos, err := e.Get(key("quiet"), "value")
	if err != nil || v != 1 || e.Wait(pos) != nil {
		t.Errorf("reads do not go on: %d, %v", v, err)
	}
	if err := e.Checkpoint(); err == nil {
		t.Error("a checkpoint was taken of what may not be in the journal")
	}
	left := disk.Crash(rand.New(rand.NewSource(1)))
	e.Close()
	c := open(t, dir, Options{JournalFS: left})
	if v, _ := get(t, c, "busy", "value"); v != 10 && v != 11 {
		t.Errorf("after the restart busy is %d, want 10, or 11 with the unknown one", v)
	}
}

// A full disk refuses adds with what to do, loses nothing, and is taken up again
// when there is room.
func TestFullDisk(t *testing.T) {
	disk := faultfs.New()
	e := open(t, t.TempDir(), Options{JournalFS: disk})
	mustAdd(t, e, "page", "value", 1, 1)
	disk.Inject(func(op faultfs.Op) faultfs.Fault {
		if op.Kind == faultfs.Write || op.Kind == faultfs.Create {
			return faultfs.Fault{Err: syscall.ENOSPC, Short: op.Len / 2}
		}
		return faultfs.Fault{}
	})
	_, pos, err := e.Add(key("page"), "value", 1)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- e.Wait(pos) }()
	deadline := time.Now().Add(20 * time.Second)
	for e.writable() == nil {
		if time.Now().After(deadline) {
			t.Fatal("a full disk is never noticed")
		}
		time.Sleep(time.Millisecond)
	}
	if _, _, err := e.Add(key("page"), "value", 1); !errors.Is(err, counter.ErrUnavailable) {
		t.Fatalf("an add to a full disk: %v", err)
	}
	if err := e.Admit(); !errors.Is(err, counter.ErrUnavailable) {
		t.Fatalf("Admit with a full disk: %v", err)
	}
	disk.Inject(nil)
	if err := <-done; err != nil {
		t.Fatalf("the add that waited for room: %v", err)
	}
	mustAdd(t, e, "page", "value", 1, 3)
	c := powerLoss(t, e, disk, rand.New(rand.NewSource(1)), Options{}, func() {}, func() {})
	if v, _ := get(t, c, "page", "value"); v != 3 {
		t.Errorf("after a full disk and a crash: %d, want 3", v)
	}
}
