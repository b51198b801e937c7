package pagestore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tally-counter/tally/counter"
)

func TestMain(m *testing.M) {
	// Pebble leaves this goroutine behind when its Open fails.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}

func seeded(t testing.TB) *rand.Rand {
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewSource(seed))
}

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func (s *Store) mustClose(t testing.TB) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// contents reads the whole store.
func (s *Store) contents(t testing.TB) map[string]string {
	t.Helper()
	got := map[string]string{}
	last := ""
	if err := s.Scan(nil, func(k, v []byte) error {
		if string(k) <= last {
			t.Fatalf("Scan: %q comes after %q", k, last)
		}
		last = string(k)
		got[last] = string(v)
		return nil
	}); err != nil {
		t.Fatalf("Scan: %v", err)
	}
	return got
}

// change is one random checkpoint: prefixes to delete and keys to set or to
// delete (empty value), by the prefix of their section.
type change map[string]*section

type section struct {
	clear bool
	keys  map[string]string
}

var prefixes = []string{"a/", "b/", "b/x/", "c/"}

func randomChange(r *rand.Rand) change {
	ch := change{}
	for _, p := range []string{"a/", "b/", "c/"} {
		if r.Intn(2) == 0 {
			continue
		}
		s := &section{clear: r.Intn(3) == 0, keys: map[string]string{}}
		for n := r.Intn(30); n > 0; n-- {
			v := ""
			if r.Intn(4) > 0 {
				v = strings.Repeat(fmt.Sprint(r.Int63()), 1+r.Intn(40))
			}
			s.keys[fmt.Sprintf("%s%s%03d", p, []string{"", "x/"}[r.Intn(2)], r.Intn(60))] = v
		}
		ch[p] = s
	}
	return ch
}

func (ch change) apply(m map[string]string) {
	for p, s := range ch {
		if s.clear {
			maps.DeleteFunc(m, func(k, _ string) bool { return strings.HasPrefix(k, p) })
		}
		for k, v := range s.keys {
			if v == "" {
				delete(m, k)
			} else {
				m[k] = v
			}
		}
	}
}

// write builds and commits ch, its sections in random order.
func (ch change) write(s *Store, r *rand.Rand) error {
	c, err := s.Begin()
	if err != nil {
		return err
	}
	defer c.Abort()
	order := slices.Sorted(maps.Keys(ch))
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, p := range order {
		c.Section()
		if ch[p].clear {
			if err := c.DeletePrefix([]byte(p)); err != nil {
				return err
			}
		}
		for _, k := range slices.Sorted(maps.Keys(ch[p].keys)) {
			v := ch[p].keys[k]
			if v == "" {
				err = c.Delete([]byte(k))
			} else {
				err = c.Set([]byte(k), []byte(v))
			}
			if err != nil {
				return err
			}
		}
	}
	return c.Commit()
}

// The store does what a map does, through many checkpoints and openings.
func TestAgainstMap(t *testing.T) {
	r := seeded(t)
	dir := t.TempDir()
	want := map[string]string{}
	s := open(t, dir, Options{})
	for round := 0; round < 150; round++ {
		ch := randomChange(r)
		if r.Intn(5) == 0 { // an aborted one leaves nothing
			c, err := s.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Set([]byte("a/aborted"), []byte("x")); err != nil {
				t.Fatal(err)
			}
			c.Abort()
		}
		if err := ch.write(s, r); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		ch.apply(want)
		if r.Intn(10) == 0 {
			s.mustClose(t)
			s = open(t, dir, Options{ReadOnly: r.Intn(2) == 0})
			if s.o.ReadOnly {
				if got := s.contents(t); !maps.Equal(got, want) {
					t.Fatalf("round %d, read only: %d records, want %d", round, len(got), len(want))
				}
				s.mustClose(t)
				s = open(t, dir, Options{})
			}
		}
		if got := s.contents(t); !maps.Equal(got, want) {
			t.Fatalf("round %d: %d records, want %d", round, len(got), len(want))
		}
		for _, p := range prefixes {
			k := fmt.Sprintf("%s%03d", p, r.Intn(60))
			v, err := s.Get([]byte(k), []byte("kept "))
			if w, ok := want[k]; ok != (err == nil) || ok && string(v) != "kept "+w {
				t.Fatalf("Get(%q) = %q, %v; want %q", k, v, err, w)
			} else if !ok && !errors.Is(err, counter.ErrNotFound) {
				t.Fatalf("Get(%q): %v, want ErrNotFound", k, err)
			}
		}
	}
	if err := s.Check(); err != nil {
		t.Fatalf("Check: %v", err)
	}
	s.mustClose(t)
}

func TestMisuseIsRefused(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	defer s.mustClose(t)
	for name, use := range map[string]func(c *Checkpoint) error{
		"keys out of order": func(c *Checkpoint) error { return errors.Join(c.Set([]byte("b"), nil), c.Set([]byte("a"), nil)) },
		"one key twice":     func(c *Checkpoint) error { return errors.Join(c.Set([]byte("b"), nil), c.Delete([]byte("b"))) },
		"empty key":         func(c *Checkpoint) error { return c.Set(nil, nil) },
		"prefix without end": func(c *Checkpoint) error {
			return c.DeletePrefix([]byte{0xff})
		},
		"sections that overlap": func(c *Checkpoint) error {
			err := errors.Join(c.Set([]byte("a"), nil), c.Set([]byte("c"), nil))
			c.Section()
			return errors.Join(err, c.Set([]byte("b"), nil), c.Set([]byte("d"), nil))
		},
	} {
		c, err := s.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Begin(); !errors.Is(err, counter.ErrBusy) {
			t.Fatalf("a second checkpoint: %v, want ErrBusy", err)
		}
		use(c)
		if err := c.Commit(); !errors.Is(err, counter.ErrInvalid) {
			t.Errorf("%s: Commit: %v, want ErrInvalid", name, err)
		}
		if err := c.Commit(); !errors.Is(err, counter.ErrInvalid) {
			t.Errorf("%s: second Commit: %v, want ErrInvalid", name, err)
		}
	}
	if got := s.contents(t); len(got) != 0 {
		t.Fatalf("refused checkpoints left %v", got)
	}
	if _, err := Open(t.TempDir(), Options{ReadOnly: true}); !errors.Is(err, counter.ErrNotFound) {
		t.Errorf("read only without a store: %v, want ErrNotFound", err)
	}
}

// A table ends inside a deleted range: both parts delete.
func TestDeletePrefixAcrossTables(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	defer s.mustClose(t)
	key := func(i int) []byte { return []byte(fmt.Sprintf("p/%08d", i)) }
	put := func(clear bool, n, step, size int) {
		t.Helper()
		c, err := s.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if clear {
			err = c.DeletePrefix([]byte("p/"))
		}
		val := bytes.Repeat([]byte{byte(step)}, size)
		for i := 0; i < n; i++ {
			err = errors.Join(err, c.Set(key(i*step), val))
		}
		if err := errors.Join(err, c.Commit()); err != nil {
			t.Fatal(err)
		}
		if len(c.paths) != 0 {
			t.Fatal("tables are left in the staging folder")
		}
	}
	put(false, 3000, 1, 10)
	put(true, 1400, 2, 100<<10) // 140 MB: three tables
	n := 0
	if err := s.Scan([]byte("p/"), func(k, v []byte) error {
		if !bytes.Equal(k, key(n*2)) || len(v) != 100<<10 {
			t.Fatalf("record %d is %s with %d bytes", n, k, len(v))
		}
		n++
		return nil
	}); err != nil || n != 1400 {
		t.Fatalf("%d records, %v; want 1400", n, err)
	}
	if files := s.Stats().Files; files < 3 {
		t.Fatalf("%d tables, want 3 or more", files)
	}
}

// Readers see checkpoints whole, while they are committed.
func TestReadsDuringCommits(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	defer s.mustClose(t)
	const keys = 200
	commit := func(v int) {
		c, err := s.Begin()
		if err != nil {
			t.Error(err)
			return
		}
		for i := 0; i < keys; i++ {
			if i%50 == 0 {
				c.Section()
			}
			_ = c.Set([]byte(fmt.Sprintf("%04d", i)), []byte(fmt.Sprint(v)))
		}
		if err := c.Commit(); err != nil {
			t.Error(err)
		}
	}
	commit(0)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := 0; g < 4; g++ {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				seen := map[string]int{}
				if err := s.Scan(nil, func(_, v []byte) error { seen[string(v)]++; return nil }); err != nil {
					t.Error(err)
				}
				if len(seen) != 1 {
					t.Errorf("a scan saw a mixture of checkpoints: %v", seen)
				}
				if _, err := s.Get([]byte("0007"), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for v := 1; v <= 60; v++ {
		commit(v)
	}
	close(stop)
	wg.Wait()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}
