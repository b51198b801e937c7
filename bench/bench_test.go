package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-counter/tally/test/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Clean()
	os.Exit(code)
}

// TestRun runs every suite at a thousandth of its size: each figure is there for
// Tally and for a Redis to hold it against.
func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out", "figures.json")
	if err := run(0.001, 1, "", t.TempDir(), out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) < 20 {
		t.Errorf("%d rows, want 20 or more", len(r.Rows))
	}
	for _, row := range r.Rows {
		if len(row.Samples[tallyName]) == 0 {
			t.Errorf("%s: no figure of Tally", row.Name)
		}
		if len(row.Samples) < 2 && !strings.HasPrefix(row.Name, "table,") {
			t.Errorf("%s: no Redis to hold Tally against", row.Name)
		}
	}
}

// TestModels: data sets are the same every time, and time-ordered ids rise.
func TestModels(t *testing.T) {
	for _, m := range []model{randomIDs, timeOrdered, hotPages, hotPosts} {
		last := uint64(0)
		for i := range uint64(10_000) {
			o := m.object(i, nil)
			if len(o.values) != len(m.counters) {
				t.Fatalf("%s: object %d has %d values, want %d", m.namespace, i, len(o.values), len(m.counters))
			}
			if again := m.object(i, nil); again.id != o.id || again.values[0] != o.values[0] {
				t.Fatalf("%s: object %d is %v, then %v", m.namespace, i, o, again)
			}
			if m.namespace != randomIDs.namespace && o.id <= last {
				t.Fatalf("%s: id %d follows %d", m.namespace, o.id, last)
			}
			if present(o) == 0 {
				t.Fatalf("%s: object %d has nothing to store", m.namespace, i)
			}
			last = o.id
		}
	}
}
