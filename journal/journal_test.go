package journal_test

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	. "github.com/tally-counter/tally/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seeded returns a source of randomness whose seed the test prints.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewSource(seed))
}

// entry is a record with the position after it.
type entry struct {
	end Pos
	rec string
}

// open opens the journal in dir and returns what it replayed.
func open(t testing.TB, dir string, o Options) (*Journal, []entry) {
	t.Helper()
	var got []entry
	j, err := Open(dir, o, func(end Pos, rec []byte) error {
		got = append(got, entry{end, string(rec)})
		return nil
	})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return j, got
}

func mustClose(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func randomRecord(r *rand.Rand, n int) []byte {
	b := make([]byte, 1+r.Intn(n))
	for i := range b {
		b[i] = byte(r.Intn(256))
	}
	return b
}

// What was appended comes back, in order and at its positions, over many
// openings, segment sizes and places to start from.
func TestReplayEquality(t *testing.T) {
	r := seeded(t)
	for _, mode := range []SyncMode{Always, Interval, Never} {
		t.Run(mode.String(), func(t *testing.T) {
			dir := t.TempDir()
			var want []entry
			for round := 0; round < 20; round++ {
				from := Pos(0)
				at := 0
				if len(want) > 0 && r.Intn(2) == 0 {
					at = r.Intn(len(want))
					from = want[at].end
					at++
				}
				o := Options{Sync: mode, SegmentBytes: 4096 + r.Int63n(20000), From: from}
				j, got := open(t, dir, o)
				if !slices.Equal(got, want[at:]) {
					t.Fatalf("round %d from %d: replayed %d records, want %d", round, from, len(got), len(want)-at)
				}
				for n := r.Intn(100); n > 0; n-- {
					rec := randomRecord(r, 3000)
					end := j.Append(rec)
					want = append(want, entry{end, string(rec)})
					if r.Intn(4) == 0 {
						if err := j.Wait(end); err != nil {
							t.Fatal(err)
						}
						if mode == Always && j.Durable() < end {
							t.Fatalf("Wait(%d) came back with %d durable", end, j.Durable())
						}
					}
				}
				if err := j.Sync(); err != nil {
					t.Fatal(err)
				}
				if j.Durable() != j.End() {
					t.Fatalf("after Sync %d of %d is durable", j.Durable(), j.End())
				}
				mustClose(t, j)
			}
		})
	}
}

func TestTrimKeepsWhatIsNeeded(t *testing.T) {
	r := seeded(t)
	dir := t.TempDir()
	j, _ := open(t, dir, Options{SegmentBytes: 4096})
	var all []entry
	for i := 0; i < 100; i++ {
		rec := randomRecord(r, 1000)
		all = append(all, entry{j.Append(rec), string(rec)})
		if err := j.Wait(all[i].end); err != nil {
			t.Fatal(err)
		}
	}
	before := j.Stats()
	if before.Segments < 5 {
		t.Fatalf("only %d segments", before.Segments)
	}
	if err := j.Trim(all[59].end); err != nil {
		t.Fatal(err)
	}
	after := j.Stats()
	if after.Segments >= before.Segments || after.First > all[59].end {
		t.Fatalf("Trim(%d) left %d of %d segments from %d on", all[59].end, after.Segments, before.Segments, after.First)
	}
	mustClose(t, j)
	j, got := open(t, dir, Options{SegmentBytes: 4096, From: all[59].end})
	if !slices.Equal(got, all[60:]) {
		t.Fatalf("replayed %d records, want 40", len(got))
	}
	mustClose(t, j)
	if _, err := Open(dir, Options{}, func(Pos, []byte) error { return nil }); err == nil {
		t.Fatal("a journal whose beginning is gone opens from position 0")
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{16, 64} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			j, _ := open(b, b.TempDir(), Options{Sync: Never})
			rec := make([]byte, size)
			b.SetBytes(int64(size))
			for i := 0; i < b.N; i++ {
				if i%1024 == 0 {
					if err := j.Admit(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				j.Append(rec)
			}
			b.StopTimer()
			mustClose(b, j)
		})
	}
}

// BenchmarkCommit is a closed loop: each waiter appends a record and waits for it.
func BenchmarkCommit(b *testing.B) {
	for _, waiters := range []int{1, 50, 256} {
		b.Run(fmt.Sprint(waiters), func(b *testing.B) {
			j, _ := open(b, b.TempDir(), Options{})
			done := make(chan error, waiters)
			b.ResetTimer()
			cpu := cpuTime()
			for w := 0; w < waiters; w++ {
				go func() {
					var rec [20]byte
					for i := w; i < b.N; i += waiters {
						binary.LittleEndian.PutUint64(rec[:], uint64(i))
						if err := j.Wait(j.Append(rec[:])); err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			for w := 0; w < waiters; w++ {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			cpu = cpuTime() - cpu
			s := j.Stats()
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(b.N)/float64(s.Syncs), "records/sync")
			b.ReportMetric(float64(s.SyncP50.Microseconds()), "µs/sync-p50")
			mustClose(b, j)
		})
	}
}

// cpuTime is what the process has used, of both kinds.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
