package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tally-counter/tally/counter"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// log makes n events with some bad rows, and what awk would count.
func log(r *rand.Rand, n int) (text string, want map[string]int64, bad int) {
	var b strings.Builder
	b.WriteString("path\tn\n")
	want = map[string]int64{}
	for range n {
		path, by := fmt.Sprintf("/p:%d/{x}", r.IntN(n/10+1)), r.Int64N(9)-2
		if r.IntN(50) == 0 {
			fmt.Fprintf(&b, "%s\tmany\n", path)
			bad++
			continue
		}
		fmt.Fprintf(&b, "%s\t%d\n", path, by)
		want[path] += by
	}
	return b.String(), want, bad
}

func logOptions(exact Exactness) ImportOptions {
	return ImportOptions{Format: TSV, Header: true, Exact: exact,
		Mapping: Mapping{Namespace: "page", ID: "path", Counter: "view", Amounts: []string{"n"}}}
}

func sameCounts(t *testing.T, m *memory, want map[string]int64) {
	t.Helper()
	got := map[string]int64{}
	for k, counts := range m.counts {
		got[k.ID.String()] = counts["view"]
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d objects, want %d; counts differ", len(got), len(want))
	}
}

func TestImportEvents(t *testing.T) {
	text, want, bad := log(seeded(t), 5000)
	m := newMemory()
	var rejected []int
	o := logOptions(BySession)
	o.Rejected = func(b BadRow) { rejected = append(rejected, b.Line) }
	r, err := Import(t.Context(), strings.NewReader(text), m, o)
	if err != nil {
		t.Fatal(err)
	}
	sameCounts(t, m, want)
	if r.Rows != 5000 || r.Rejected != int64(bad) || r.Applied != int64(5000-bad) || len(rejected) != bad || !slices.IsSorted(rejected) {
		t.Errorf("report %+v, %d bad rows wanted, told of %d", r, bad, len(rejected))
	}

	// The same again: nothing is counted twice.
	r, err = Import(t.Context(), strings.NewReader(text), m, o)
	if err != nil || r.Applied != 0 || r.Earlier != int64(5000-bad) || r.Rows != 5000 {
		t.Errorf("again: %+v, %v", r, err)
	}
	sameCounts(t, m, want)

	// Another mapping is another import.
	o.Mapping.Counter = "hit"
	if r, err = Import(t.Context(), strings.NewReader(text), m, o); err != nil || r.Earlier != 0 {
		t.Errorf("other mapping: %+v, %v", r, err)
	}
}

// TestImportThroughTrouble: requests and answers are lost and runs are cut short
// at any point, until one comes through; then every row counts once.
func TestImportThroughTrouble(t *testing.T) {
	for _, exact := range []Exactness{BySession, ByTokens} {
		t.Run(fmt.Sprint(exact), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnd := seeded(t)
				m := newMemory()
				text, want, bad := log(rnd, 60_000)
				for run := 1; ; run++ {
					ctx, cancel := context.WithCancel(t.Context())
					left := 1 + rnd.IntN(10*run)
					m.trouble = func() (before, after error) {
						if left--; left == 0 {
							cancel() // the client dies: nobody hears the answer
						}
						if ctx.Err() != nil {
							return nil, ctx.Err()
						}
						switch rnd.IntN(8) {
						case 0:
							return fmt.Errorf("full: %w", counter.ErrBusy), nil
						case 1:
							return nil, fmt.Errorf("connection lost: %w", counter.ErrUnknown)
						}
						return nil, nil
					}
					r, err := Import(ctx, strings.NewReader(text), m, logOptions(exact))
					cancel()
					if err == nil {
						if r.Rejected != int64(bad) || r.Rows != 60_000 {
							t.Errorf("report %+v, want %d bad rows", r, bad)
						}
						break
					}
					if !errors.Is(err, context.Canceled) {
						t.Fatalf("run %d: %v", run, err)
					}
				}
				sameCounts(t, m, want)
			})
		})
	}
}

func TestImportGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.trouble = func() (before, after error) { return fmt.Errorf("no route: %w", counter.ErrUnavailable), nil }
		start := time.Now()
		_, err := Import(t.Context(), strings.NewReader("path\tn\na\t1\n"), m, logOptions(BySession))
		if !errors.Is(err, counter.ErrUnavailable) || !strings.Contains(err.Error(), "run the same import again") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took > time.Minute || took < 50*time.Second {
			t.Errorf("gave up after %s", took)
		}
	})
}

func TestImportFenced(t *testing.T) {
	m := newMemory()
	m.trouble = func() (before, after error) {
		for p := range m.epochs {
			m.epochs[p]++ // another process opens the session
		}
		return nil, nil
	}
	_, err := Import(t.Context(), strings.NewReader("path\tn\na\t1\n"), m, logOptions(BySession))
	if !errors.Is(err, counter.ErrFenced) {
		t.Errorf("error %v", err)
	}
}

func TestImportStrict(t *testing.T) {
	m := newMemory()
	o := logOptions(BySession)
	o.Strict = true
	r, err := Import(t.Context(), strings.NewReader("path\tn\na\t1\nb\tx\n"), m, o)
	if !errors.Is(err, counter.ErrInvalid) || len(m.counts) != 0 || r.Rejected != 1 {
		t.Errorf("%+v, %v, %d objects", r, err, len(m.counts))
	}
	if r, err = Import(t.Context(), strings.NewReader("path\tn\na\t1\nb\t2\n"), m, o); err != nil || r.Applied != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	m.rejectAt = func(it *Item) error { return fmt.Errorf("it stands at 3: %w", counter.ErrBounds) }
	if r, err = Import(t.Context(), strings.NewReader("path\tn\na\t1\n"), m, o); !errors.Is(err, counter.ErrInvalid) || r.Rejected != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDryRun(t *testing.T) {
	m := newMemory()
	o := logOptions(BySession)
	o.DryRun = true
	r, err := Import(t.Context(), strings.NewReader("path\tn\na\t1\nb\tx\n"), m, o)
	if err != nil || len(m.counts)+len(m.epochs) != 0 || r.Rows != 2 || r.Rejected != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestBatchesStay: a batch ends where the input says, whatever is bad around it.
func TestBatchesStay(t *testing.T) {
	text := strings.Repeat("a\t1\n"+strings.Repeat("y", 3000)+"\tx\n", 2500)
	m := newMemory()
	var sizes []int
	m.rejectAt = nil
	target := sizing{m, &sizes}
	if _, err := Import(t.Context(), strings.NewReader("path\tn\n"+text), target, logOptions(BySession)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sizes, []int{1000, 1000, 500}) {
		t.Errorf("batches of %v", sizes)
	}
}

type sizing struct {
	*memory
	sizes *[]int
}

func (s sizing) Send(ctx context.Context, batches []*Batch) (int, error) {
	for _, b := range batches {
		*s.sizes = append(*s.sizes, len(b.Items))
	}
	return s.memory.Send(ctx, batches)
}
