package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tally-counter/tally/counter"
)

func (m *memory) Scan(_ context.Context, ns string, from counter.ID, limit int) (Page, error) {
	var p Page
	for k, counts := range m.counts {
		if k.Namespace != ns || k.ID.Compare(from) < 0 {
			continue
		}
		o := Object{ID: k.ID}
		for name, v := range counts {
			o.Values = append(o.Values, counter.Value{Counter: name, Value: v})
		}
		p.Objects = append(p.Objects, o)
	}
	slices.SortFunc(p.Objects, func(a, b Object) int { return a.ID.Compare(b.ID) })
	if len(p.Objects) > limit {
		p.Next, p.More, p.Objects = p.Objects[limit].ID, true, p.Objects[:limit]
	}
	return p, nil
}

// TestRoundTrip: what is exported and imported again is the same, in every
// format that can say it; a format that cannot says so.
func TestRoundTrip(t *testing.T) {
	rnd := seeded(t)
	for _, f := range []Format{TSV, CSV, JSONL} {
		alphabet := []string{"a", "é", ":", "{", "}", `"`, ",", " ", "\\", "0", "'"}
		switch f {
		case CSV:
			alphabet = append(alphabet, "\n", "\r", "\t", "\xff", "\ufeff")
		case JSONL:
			alphabet = append(alphabet, "\n", "\r", "\t", "\u2028", "<", "\x00")
		}
		text := func(n int) string {
			s := ""
			for range n {
				s += alphabet[rnd.IntN(len(alphabet))]
			}
			return s
		}
		m := newMemory()
		for i := range 3000 {
			k := counter.Key{Namespace: "x", ID: counter.ParseID(text(rnd.IntN(6)))}
			if i%2 == 0 {
				k.ID = counter.IntID(rnd.Uint64() >> rnd.IntN(64))
			}
			m.counts[k] = map[string]int64{}
			for range 1 + rnd.IntN(3) {
				m.counts[k][text(1+rnd.IntN(3))] = rnd.Int64() >> rnd.IntN(64) * (1 - 2*rnd.Int64N(2))
			}
		}
		var file bytes.Buffer
		out, err := Export(t.Context(), m, &file, "x", counter.ID{}, f, true, nil)
		if err != nil || out.Objects != int64(len(m.counts)) {
			t.Fatalf("%s: %+v, %v; %d objects", f, out, err, len(m.counts))
		}
		back := newMemory()
		r, err := Import(t.Context(), bytes.NewReader(file.Bytes()), back, ImportOptions{
			Format: f, Header: true, Strict: true, Mapping: Mapping{Kind: Values, Namespace: "x", EmptyID: true}})
		if err != nil || r.Applied != out.Rows {
			t.Fatalf("%s: %+v, %v; %d rows", f, r, err, out.Rows)
		}
		if !reflect.DeepEqual(back.counts, m.counts) {
			t.Errorf("%s: the objects differ", f)
		}
	}
}

func TestExportUnspeakable(t *testing.T) {
	for f, id := range map[Format]string{TSV: "b\tc", JSONL: "b\xff"} {
		m := newMemory()
		for _, id := range []string{"a", id, "d"} {
			m.counts[counter.Key{Namespace: "x", ID: counter.ParseID(id)}] = map[string]int64{"v": 1}
		}
		var file bytes.Buffer
		out, err := Export(t.Context(), m, &file, "x", counter.ID{}, f, false, nil)
		if !errors.Is(err, counter.ErrInvalid) || out.Objects != 1 || out.Next != id || strings.Count(file.String(), "\n") != 1 {
			t.Errorf("%s: %+v, %v, %q", f, out, err, file.String())
		}
	}
}

// TestExportGoesOn: pieces from where the last one stopped make the whole.
func TestExportGoesOn(t *testing.T) {
	m := newMemory()
	for i := range uint64(2500) {
		m.counts[counter.Key{Namespace: "x", ID: counter.IntID(i * 7)}] = map[string]int64{"v": int64(i)}
	}
	var whole, pieces bytes.Buffer
	if _, err := Export(t.Context(), m, &whole, "x", counter.ID{}, TSV, true, nil); err != nil {
		t.Fatal(err)
	}
	broken := &breaking{Source: m, after: 2}
	out, err := Export(t.Context(), broken, &pieces, "x", counter.ID{}, TSV, true, nil)
	if err == nil || out.Next == "" {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, err := Export(t.Context(), m, &pieces, "x", counter.ParseID(out.Next), TSV, false, nil); err != nil {
		t.Fatal(err)
	}
	if whole.String() != pieces.String() {
		t.Error("the pieces differ from the whole")
	}
}

type breaking struct {
	Source
	after int
}

func (b *breaking) Scan(ctx context.Context, ns string, from counter.ID, limit int) (Page, error) {
	if b.after--; b.after < 0 {
		return Page{}, fmt.Errorf("connection lost: %w", counter.ErrUnavailable)
	}
	return b.Source.Scan(ctx, ns, from, limit)
}
