package offline

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
	"github.com/tally-counter/tally/transfer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *Directory {
	t.Helper()
	d, err := Open(dir, true, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// TestTransfer: events by session, values and export, over a close and an open.
func TestTransfer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d := open(t, dir)
	events := transfer.ImportOptions{Header: true, Mapping: transfer.Mapping{Namespace: "x", ID: "id", Counter: "n", Amounts: []string{"by"}}}
	rows := "id\tby\n7\t5\na:{b}\t-1\n7\t2\n"
	for _, want := range []transfer.Report{{Rows: 3, Applied: 3}, {Rows: 3, Earlier: 3}} {
		r, err := transfer.Import(t.Context(), strings.NewReader(rows), d, events)
		if err != nil || r.Applied != want.Applied || r.Earlier != want.Earlier || r.Rows != want.Rows {
			t.Errorf("%+v, %v; want %+v", r, err, want)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open(t, dir)
	}
	values := transfer.ImportOptions{Header: true, Mapping: transfer.Mapping{Kind: transfer.Values, Namespace: "x", Counter: "zero"}}
	values.Mapping.Amounts = []string{"value"}
	if r, err := transfer.Import(t.Context(), strings.NewReader("id\tvalue\n9\t0\n"), d, values); err != nil || r.Applied != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	var out bytes.Buffer
	if _, err := transfer.Export(t.Context(), d, &out, "x", counter.ID{}, transfer.TSV, false, nil); err != nil {
		t.Fatal(err)
	}
	if want := "7\tn\t7\n9\tzero\t0\na:{b}\tn\t-1\n"; out.String() != want {
		t.Errorf("exported %q, want %q", out.String(), want)
	}
	stats, err := d.Stats(t.Context())
	if err != nil || stats["objects"] != 3.0 || stats["sessions"] != 1.0 {
		t.Errorf("objects %v, sessions %v, %v", stats["objects"], stats["sessions"], err)
	}
}

// TestRefusals: what a bound forbids comes back as a refusal of its item.
func TestRefusals(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "data"))
	s := counter.Undeclared("n")
	s.Max = 1
	if _, err := d.engine.DeclareCounter("x", s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []transfer.Kind{transfer.Events, transfer.Values} {
		b := &transfer.Batch{Kind: kind}
		for _, by := range []int64{1, 5} {
			b.Items = append(b.Items, transfer.Item{Key: counter.Key{Namespace: "x", ID: counter.IntID(1)}, Deltas: []counter.Delta{{Counter: "n", By: by}}})
		}
		done, err := d.Send(t.Context(), []*transfer.Batch{b})
		if err != nil || done != 1 || b.Applied != 1 || len(b.Refused) != 1 || b.Refused[0].Item != 1 || !errors.Is(b.Refused[0].Err, counter.ErrBounds) {
			t.Errorf("%s: %d done, %v, %+v", kind, done, err, b)
		}
	}
}

func TestNotThere(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none"), false, engine.Options{}); !errors.Is(err, counter.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	d := open(t, filepath.Join(t.TempDir(), "data"))
	if _, err := d.Scan(t.Context(), "none", counter.ID{}, 1); !errors.Is(err, counter.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}
