package engine

import (
	"errors"
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tally-counter/tally/counter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that tests move.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.ms.Store(1_800_000_000_000)
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

func open(t *testing.T, dir string, o Options) *Engine {
	t.Helper()
	e, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func key(s string) counter.Key {
	k, err := counter.ParseKey(s)
	if err != nil {
		panic(err)
	}
	return k
}

func mustAdd(t *testing.T, e *Engine, k, name string, by, want int64) {
	t.Helper()
	v, pos, err := e.Add(key(k), name, by)
	if err != nil || v != want {
		t.Fatalf("Add(%s %s %d) = %d, %v; want %d", k, name, by, v, err, want)
	}
	if err := e.Wait(pos); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, e *Engine, k, name string) (int64, bool) {
	t.Helper()
	v, ok, _, err := e.Get(key(k), name)
	if err != nil {
		t.Fatal(err)
	}
	return v, ok
}

// crash copies the directory as it stands, as a kill -9 right after the last
// acknowledgement would leave it, and opens the copy.
func crash(t *testing.T, e *Engine, o Options) *Engine {
	t.Helper()
	if err := e.journal.Sync(); err != nil {
		t.Fatal(err)
	}
	e.keeper.checkpointMu.Lock() // only compactions may move files under the copy
	defer e.keeper.checkpointMu.Unlock()
	for range 1000 {
		dir, before := t.TempDir(), listing(e.dir)
		if err := os.CopyFS(dir, os.DirFS(e.dir)); err == nil && listing(e.dir) == before {
			return open(t, dir, o)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the page store never came to rest")
	return nil
}

// listing is the names and sizes of the files below dir.
func listing(dir string) string {
	var b strings.Builder
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil {
			if info, err := d.Info(); err == nil {
				fmt.Fprintln(&b, p, info.Size())
			}
		}
		return nil
	})
	return b.String()
}

func TestAddsOutliveACrash(t *testing.T) {
	e := open(t, t.TempDir(), Options{})
	mustAdd(t, e, "post:1001", "like", 1, 1)
	mustAdd(t, e, "post:1001", "like", 4, 5)
	mustAdd(t, e, "post:1001", "view", -7, -7)
	mustAdd(t, e, "a page", "value", 0, 0)
	c := crash(t, e, Options{})
	if err := e.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, e, "post:1002", "like", math.MaxInt64, math.MaxInt64)
	for _, e := range []*Engine{e, c, crash(t, e, Options{})} {
		if v, ok := get(t, e, "post:1001", "like"); v != 5 || !ok {
			t.Errorf("like = %d, %v", v, ok)
		}
		if v, ok := get(t, e, "post:1001", "view"); v != -7 || !ok {
			t.Errorf("view = %d, %v", v, ok)
		}
		if v, ok := get(t, e, "a page", "value"); v != 0 || !ok {
			t.Errorf("a present zero reads %d, %v", v, ok)
		}
		if _, ok := get(t, e, "nothing", "value"); ok {
			t.Error("an absent object has a value")
		}
	}
	if _, _, err := e.Add(key("post:1002"), "like", 1); !errors.Is(err, counter.ErrOverflow) {
		t.Errorf("past the largest value: %v", err)
	}
	if v, _ := get(t, e, "post:1002", "like"); v != math.MaxInt64 {
		t.Errorf("after a refused add: %d", v)
	}
}

func TestOneProcessHoldsADirectory(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, Options{})
	if _, err := Open(dir, Options{}); !errors.Is(err, counter.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Fatalf("a second Open: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Add(key("x"), "value", 1); !errors.Is(err, counter.ErrClosed) {
		t.Fatalf("an add to a closed engine: %v", err)
	}
}

func TestBounds(t *testing.T) {
	e := open(t, t.TempDir(), Options{})
	declare := func(s counter.Schema) {
		t.Helper()
		if _, err := e.DeclareCounter("shop", s); err != nil {
			t.Fatal(err)
		}
	}
	declare(counter.Schema{Name: "stock", Min: 0, Max: math.MaxInt64})
	declare(counter.Schema{Name: "score", Min: -10, Max: 10, Policy: counter.Clamp})
	mustAdd(t, e, "shop:1", "stock", 3, 3)
	if v, _, err := e.Add(key("shop:1"), "stock", -4); !errors.Is(err, counter.ErrBounds) || v != 3 || !strings.Contains(err.Error(), "3 are left") {
		t.Fatalf("overselling = %d, %v", v, err)
	}
	mustAdd(t, e, "shop:1", "stock", -3, 0)
	if v, ok := get(t, e, "shop:1", "stock"); v != 0 || !ok {
		t.Fatalf("stock = %d, %v", v, ok)
	}
	mustAdd(t, e, "shop:1", "score", 50, 10)
	mustAdd(t, e, "shop:1", "score", math.MinInt64, -10)
	mustAdd(t, e, "shop:1", "score", math.MaxInt64, 10)
	// An add of several is all or none.
	adds := []Add{{Key: key("shop:1"), Deltas: []counter.Delta{{Counter: "sold", By: 1}, {Counter: "stock", By: -1}}}}
	if _, err := e.AddBatch(adds); err != nil {
		t.Fatal(err)
	}
	if adds[0].Outcome != counter.Rejected || adds[0].Values[0] != 0 || adds[0].Values[1] != 0 {
		t.Fatalf("outcome %s, values %v", adds[0].Outcome, adds[0].Values)
	}
	if _, ok := get(t, e, "shop:1", "sold"); ok {
		t.Error("half of a rejected add was applied")
	}
	// Narrower bounds: what is outside may only move towards them.
	mustAdd(t, e, "shop:2", "stock", 100, 100)
	declare(counter.Schema{Name: "stock", Min: 0, Max: 50})
	if _, _, err := e.Add(key("shop:2"), "stock", 1); !errors.Is(err, counter.ErrBounds) {
		t.Errorf("away from the bounds: %v", err)
	}
	mustAdd(t, e, "shop:2", "stock", -10, 90)
	r := crash(t, e, Options{})
	if _, _, err := r.Add(key("shop:1"), "stock", -1); !errors.Is(err, counter.ErrBounds) {
		t.Errorf("bounds after a crash: %v", err)
	}
}

func TestTokens(t *testing.T) {
	now := newClock()
	o := Options{Now: now.now, TokensMax: 100}
	e := open(t, t.TempDir(), o)
	add := func(e *Engine, k, token string, deltas ...counter.Delta) *Add {
		t.Helper()
		a := []Add{{Key: key(k), Deltas: deltas, Token: token}}
		pos, err := e.AddBatch(a)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Wait(pos); err != nil {
			t.Fatal(err)
		}
		return &a[0]
	}
	want := func(a *Add, o counter.Outcome, kind error, v int64) {
		t.Helper()
		if a.Outcome != o || !errors.Is(a.Err, kind) || (kind == nil && a.Values[0] != v) {
			t.Fatalf("outcome %s, values %v, error %v; want %s, %d, %v", a.Outcome, a.Values, a.Err, o, v, kind)
		}
	}
	like := counter.Delta{Counter: "like", By: 2}
	want(add(e, "post:1", "t1", like), counter.Applied, nil, 2)
	want(add(e, "post:1", "t1", like), counter.Duplicate, nil, 2)
	want(add(e, "post:2", "t1", like), counter.Applied, nil, 2) // a token is of one object
	want(add(e, "post:1", "t1", counter.Delta{Counter: "like", By: 3}), counter.Failed, counter.ErrConflict, 0)
	want(add(e, "post:1", "t1", like, like), counter.Failed, counter.ErrConflict, 0)
	want(add(e, "post:1", "t2", like, counter.Delta{Counter: "view", By: 1}), counter.Applied, nil, 4)
	want(add(crash(t, e, o), "post:1", "t2", like, counter.Delta{Counter: "view", By: 1}), counter.Duplicate, nil, 4)
	if err := e.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	want(add(e, "post:1", "t3", like), counter.Applied, nil, 6)
	for range 2 { // from the page store, and the newest from the journal
		c := crash(t, e, o)
		want(add(c, "post:1", "t1", like), counter.Duplicate, nil, 6)
		want(add(c, "post:1", "t3", like), counter.Duplicate, nil, 6)
		if err := e.Checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	// A token that carries its time is refused when it may have been forgotten.
	v7 := func(at time.Time) string {
		return fmt.Sprintf("%08x-%04x-7abc-8def-0123456789ab", at.UnixMilli()>>16, at.UnixMilli()&0xffff)
	}
	born := now.now()
	want(add(e, "post:3", v7(born), like), counter.Applied, nil, 2)
	want(add(e, "post:3", v7(born.Add(2*time.Minute)), like), counter.Failed, counter.ErrInvalid, 0)
	now.advance(10 * time.Minute)
	want(add(e, "post:3", v7(born), like), counter.Duplicate, nil, 2)
	now.advance(time.Second)
	want(add(e, "post:3", v7(born), like), counter.Failed, counter.ErrTooOld, 0)
	now.advance(5 * time.Minute)
	want(add(e, "post:1", "t1", like), counter.Applied, nil, 8) // forgotten, as said
	want(add(e, "post:1", strings.Repeat("t", 65), like), counter.Failed, counter.ErrInvalid, 0)
	for i := range 200 {
		a := add(e, "post:9", fmt.Sprint("many", i), like)
		if a.Err != nil {
			if !errors.Is(a.Err, counter.ErrBusy) || i < 90 {
				t.Fatalf("token %d: %v", i, a.Err)
			}
			return
		}
	}
	t.Fatal("the number of tokens is not bounded")
}

func TestSessions(t *testing.T) {
	e := open(t, t.TempDir(), Options{SessionsMax: 2})
	batch := func() []Add {
		return []Add{
			{Key: key("post:1"), Deltas: []counter.Delta{{Counter: "like", By: 1}}},
			{Key: key("post:2"), Deltas: []counter.Delta{{Counter: "like", By: 2}, {Counter: "view", By: 3}}},
		}
	}
	epoch, last, _, err := e.OpenSession("importer")
	if err != nil || epoch != 1 || last != 0 {
		t.Fatalf("OpenSession = %d, %d, %v", epoch, last, err)
	}
	send := func(e *Engine, epoch, seq uint64) ([]Add, error) {
		b := batch()
		pos, err := e.AddSession(Session{"importer", epoch, seq}, b)
		if err == nil {
			err = e.Wait(pos)
		}
		return b, err
	}
	if b, err := send(e, 1, 1); err != nil || b[1].Outcome != counter.Applied || b[1].Values[1] != 3 {
		t.Fatal(b, err)
	}
	if _, err := send(e, 1, 3); !errors.Is(err, counter.ErrGap) {
		t.Fatal(err)
	}
	if err := e.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if b, err := send(e, 1, 2); err != nil || b[0].Values[0] != 2 {
		t.Fatal(b, err)
	}
	for range 2 {
		c := crash(t, e, Options{})
		if b, err := send(c, 1, 2); err != nil || b[0].Outcome != counter.Duplicate || b[1].Values[1] != 6 {
			t.Fatal(b, err)
		}
		if epoch, last, _, err := c.OpenSession("importer"); epoch != 2 || last != 2 || err != nil {
			t.Fatal(epoch, last, err)
		}
		if _, err := send(c, 1, 3); !errors.Is(err, counter.ErrFenced) {
			t.Fatal(err)
		}
		if err := e.Checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.AddSession(Session{"nobody", 1, 1}, batch()); !errors.Is(err, counter.ErrNotFound) {
		t.Fatal(err)
	}
	if _, _, _, err := e.OpenSession("second"); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := e.OpenSession("third"); !errors.Is(err, counter.ErrBusy) {
		t.Fatal(err)
	}
	if _, err := e.CloseSession("second"); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := e.OpenSession("third"); err != nil {
		t.Fatal(err)
	}
}

func TestExpiry(t *testing.T) {
	now := newClock()
	o := Options{Now: now.now}
	e := open(t, t.TempDir(), o)
	expire := func(k string, at int64) {
		t.Helper()
		if _, err := e.Update([]counter.Key{key(k)}, func(tx *Tx) error { return tx.SetExpiry(key(k), at) }); err != nil {
			t.Fatal(err)
		}
	}
	soon := now.now().Add(time.Minute).UnixMilli()
	for _, k := range []string{"s:1", "s:2", "s:3", "s:4"} {
		mustAdd(t, e, k, "a", 5, 5)
		mustAdd(t, e, k, "b", 6, 6)
	}
	expire("s:1", soon)
	expire("s:2", soon)
	expire("s:2", 0)
	expire("s:3", now.now().UnixMilli()) // past: deletes
	if _, err := e.Update([]counter.Key{key("s:4")}, func(tx *Tx) error { return tx.SetCounterExpiry(key("s:4"), "a", soon) }); err != nil {
		t.Fatal(err)
	}
	if _, ok := get(t, e, "s:3", "a"); ok {
		t.Error("an expiry in the past left the object")
	}
	if _, err := e.View([]counter.Key{key("s:1")}, func(tx *Tx) error {
		if at, ok, err := tx.Expiry(key("s:1")); at != soon || !ok || err != nil {
			t.Errorf("Expiry = %d, %v, %v", at, ok, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	now.advance(time.Minute)
	for _, e := range []*Engine{crash(t, e, o), e} {
		if _, ok := get(t, e, "s:1", "a"); ok {
			t.Error("an expired object is read")
		}
		if v, ok := get(t, e, "s:2", "a"); !ok || v != 5 {
			t.Error("a persisted object is gone")
		}
		if _, ok := get(t, e, "s:4", "a"); ok {
			t.Error("an expired counter is read")
		}
		if v, _ := get(t, e, "s:4", "b"); v != 6 {
			t.Error("the other counter of its object is gone")
		}
		if vs, _, err := e.ReadAll(key("s:4"), nil); err != nil || len(vs) != 1 || vs[0].Counter != "b" {
			t.Errorf("ReadAll = %v, %v", vs, err)
		}
		mustAdd(t, e, "s:1", "b", 1, 1) // begins anew, without expiry
		if _, ok := get(t, e, "s:1", "a"); ok {
			t.Error("a counter came back from an expired object")
		}
	}
	now.advance(time.Hour)
	if v, _ := get(t, e, "s:1", "b"); v != 1 {
		t.Error("the new object inherited an expiry")
	}
	// The sweep removes what nobody asks for.
	for i := range 1000 {
		k := fmt.Sprintf("s:x%d", i)
		mustAdd2(t, e, k, 1)
		expire(k, now.now().Add(time.Second).UnixMilli())
	}
	now.advance(2 * time.Second)
	deadline := time.Now().Add(20 * time.Second)
	for e.Objects() > 3 {
		if time.Now().After(deadline) {
			t.Fatalf("%d objects are left", e.Objects())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func mustAdd2(t *testing.T, e *Engine, k string, by int64) {
	t.Helper()
	if _, _, err := e.Add(key(k), "value", by); err != nil {
		t.Fatal(err)
	}
}

// model is what the engine must equal.
type model map[string]map[string]int64

func (m model) set(k, name string, v int64) {
	if m[k] == nil {
		m[k] = map[string]int64{}
	}
	m[k][name] = v
}

func check(t *testing.T, e *Engine, m model) {
	t.Helper()
	for k, row := range m {
		values, _, err := e.ReadAll(key(k), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(values) != len(row) {
			t.Fatalf("%s has %v, want %v", k, values, row)
		}
		for _, v := range values {
			if w, ok := row[v.Counter]; !ok || w != v.Value {
				t.Fatalf("%s has %v, want %v", k, values, row)
			}
		}
	}
	if n := e.Objects(); n != int64(len(m)) {
		t.Fatalf("%d objects, want %d", n, len(m))
	}
	// A scan sees each object once, in order.
	seen := 0
	for _, ns := range e.Namespaces() {
		var last *counter.ID
		from := counter.IntID(0)
		for {
			next, more, _, err := e.Scan(ns.Name, from, 7, func(id counter.ID, _ []counter.Value) bool {
				if last != nil && id.Compare(*last) <= 0 {
					t.Fatalf("scan of %s: %s after %s", ns.Name, id, *last)
				}
				last = &id
				if m[counter.Key{Namespace: ns.Name, ID: id}.String()] == nil {
					t.Fatalf("scan of %s: %s is not there", ns.Name, id)
				}
				seen++
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				break
			}
			from = next
		}
	}
	if seen != len(m) {
		t.Fatalf("scans saw %d objects of %d", seen, len(m))
	}
}

// Any run of operations, with checkpoints, reopening and crashes between, leaves
// the engine equal to a map.
func TestEngineEqualsAMap(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	o := Options{SegmentBytes: 64 << 10}
	e := open(t, t.TempDir(), o)
	m := model{}
	randomKey := func() string {
		ns := []string{"post:", "user:", "", "a:b:"}[r.Intn(4)]
		switch r.Intn(3) {
		case 0:
			return ns + fmt.Sprint(r.Intn(300))
		case 1:
			return ns + fmt.Sprint(r.Uint64())
		}
		return ns + "page/" + fmt.Sprint(r.Intn(300))
	}
	names := []string{"value", "like", "view", "comment", "x"}
	name := func() string { return names[r.Intn(len(names))] }
	delta := func() int64 {
		if r.Intn(20) == 0 {
			return int64(r.Uint64()) / 4
		}
		return int64(r.Intn(40)) - 5
	}
	steps := 2500
	if testing.Short() {
		steps = 500
	}
	for step := range steps {
		k := randomKey()
		switch op := r.Intn(100); {
		case op < 40:
			n, by := name(), delta()
			want, sumErr := counter.Sum(m[k][n], by)
			v, _, err := e.Add(key(k), n, by)
			if (err == nil) != (sumErr == nil) || (err == nil && v != want) {
				t.Fatalf("step %d: Add(%s, %s, %d) = %d, %v; want %d, %v", step, k, n, by, v, err, want, sumErr)
			}
			if err == nil {
				m.set(k, n, want)
			}
		case op < 55:
			adds := make([]Add, r.Intn(100)+1)
			for i := range adds {
				a := &adds[i]
				if i > 0 && r.Intn(4) == 0 {
					a.Key = adds[i-1].Key
				} else {
					a.Key = key(randomKey())
				}
				for range 1 + r.Intn(3)*r.Intn(2) {
					a.Deltas = append(a.Deltas, counter.Delta{Counter: name(), By: delta()})
				}
				if r.Intn(5) == 0 {
					a.Token = fmt.Sprint(r.Int63())
				}
			}
			if _, err := e.AddBatch(adds); err != nil {
				t.Fatal(err)
			}
			for _, a := range adds {
				row := map[string]int64{}
				ok := true
				for _, d := range a.Deltas {
					if _, seen := row[d.Counter]; !seen {
						row[d.Counter] = m[a.Key.String()][d.Counter]
					}
					v, err := counter.Sum(row[d.Counter], d.By)
					ok = ok && err == nil
					row[d.Counter] = v
				}
				if ok != (a.Outcome == counter.Applied) {
					t.Fatalf("step %d: %+v", step, a)
				}
				if ok {
					for n, v := range row {
						m.set(a.Key.String(), n, v)
					}
					if last := a.Deltas[len(a.Deltas)-1]; a.Values[len(a.Values)-1] != row[last.Counter] {
						t.Fatalf("step %d: %+v, want %v", step, a, row)
					}
				}
			}
		case op < 65:
			n, v := name(), delta()
			if _, err := e.Update([]counter.Key{key(k)}, func(tx *Tx) error { return tx.Set(key(k), n, v) }); err != nil {
				t.Fatal(err)
			}
			m.set(k, n, v)
		case op < 75:
			n := name()
			_, had := m[k][n]
			if _, err := e.Update([]counter.Key{key(k)}, func(tx *Tx) error {
				was, err := tx.Clear(key(k), n)
				if was != had {
					t.Errorf("step %d: Clear(%s, %s) = %v", step, k, n, was)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if delete(m[k], n); len(m[k]) == 0 {
				delete(m, k)
			}
		case op < 90:
			keys := make([]string, 1+r.Intn(20))
			for i := range keys {
				keys[i] = randomKey()
			}
			parsed := make([]counter.Key, len(keys))
			for i := range keys {
				parsed[i] = key(keys[i])
			}
			if _, err := e.Update(parsed, func(tx *Tx) error {
				for i, k := range keys {
					was, err := tx.Delete(parsed[i])
					if err != nil || was != (m[k] != nil) {
						t.Errorf("step %d: Delete(%s) = %v, %v", step, k, was, err)
					}
					delete(m, k)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		case op < 92:
			if err := e.Checkpoint(); err != nil {
				t.Fatal(err)
			}
		case op < 94:
			e.lockAll() // everything that is clean leaves the memory
			for i := range e.parts {
				e.relieve(&e.parts[i], math.MaxInt32)
			}
			e.unlockAll()
		case op < 95:
			if r.Intn(4) > 0 {
				continue
			}
			ns := []string{"post", "user", "default", "a:b"}[r.Intn(4)]
			if _, err := e.DropNamespace(ns); err != nil && !errors.Is(err, counter.ErrNotFound) {
				t.Fatal(err)
			}
			for k := range m {
				if key(k).Namespace == ns {
					delete(m, k)
				}
			}
		case op < 98:
			keys := make([]counter.Key, 1+r.Intn(50))
			for i := range keys {
				keys[i] = key(randomKey())
			}
			values, present := make([]int64, len(keys)*len(names)), make([]bool, len(keys)*len(names))
			exists := make([]bool, len(keys))
			if r.Intn(2) == 0 {
				exists = nil
			}
			if _, err := e.ReadBatch(keys, names, values, present, exists); err != nil {
				t.Fatal(err)
			}
			for i, k := range keys {
				row := m[k.String()]
				if exists != nil && exists[i] != (row != nil) {
					t.Fatalf("step %d: %s exists: %v", step, k, exists[i])
				}
				for j, n := range names {
					v, ok := row[n]
					if at := i*len(names) + j; values[at] != v || present[at] != ok {
						t.Fatalf("step %d: ReadBatch %s %s = %d, %v; want %d, %v", step, k, n, values[at], present[at], v, ok)
					}
				}
			}
		case op < 99:
			old := e
			e = crash(t, old, o)
			old.Close()
		default:
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			report, err := Verify(e.dir, VerifyOptions{})
			if err != nil || report.ProblemCount > 0 || report.Objects != int64(len(m)) {
				t.Fatalf("step %d: verify: %+v, %v; %d objects", step, report, err, len(m))
			}
			e = open(t, e.dir, o)
		}
		if step%200 == 0 {
			check(t, e, m)
		}
	}
	check(t, e, m)
}

// More data than the budget: pages leave and come back, and every sum is right.
func TestMemoryBudget(t *testing.T) {
	e := open(t, t.TempDir(), Options{Memory: MemoryMin})
	const objects, batches = 300_000, 400
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	id := func(n int) counter.ID { // long and without common beginnings
		h := mix(uint64(n))
		return counter.ParseID(strings.Repeat(fmt.Sprintf("%016x", h), 7))
	}
	want := make([]int64, objects)
	keys, names := make([]counter.Key, 1000), make([]string, 1000)
	by, values, errs := make([]int64, 1000), make([]int64, 1000), make([]error, 1000)
	for range batches {
		for i := range keys {
			n := r.Intn(objects)
			keys[i] = counter.Key{Namespace: "post", ID: id(n)}
			names[i] = "view"
			by[i] = int64(r.Uint64()) >> 16
			want[n] += by[i]
		}
		if _, err := e.AddEach(keys, names, by, values, errs); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	s := e.Stats()
	t.Logf("%d objects, %d of %d pages resident, %d bytes of %d, %d loads, %d checkpoints", s.Objects, s.PagesResident, s.PagesTotal, s.MemoryBytes, s.MemoryBudget, s.PageLoads, s.Checkpoints)
	if s.PagesResident == s.PagesTotal {
		t.Error("the data fitted the budget: nothing was tried")
	}
	if s.MemoryBytes > s.MemoryBudget/4*5 {
		t.Errorf("%d bytes are in memory, the budget is %d", s.MemoryBytes, s.MemoryBudget)
	}
	for n := range want {
		v, _, _, err := e.Get(counter.Key{Namespace: "post", ID: id(n)}, "view")
		if err != nil || v != want[n] {
			t.Fatalf("object %d = %d, %v; want %d", n, v, err, want[n])
		}
	}
}

func TestConcurrentAdds(t *testing.T) {
	e := open(t, t.TempDir(), Options{})
	const workers, each, objects = 8, 2000, 50
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			r := rand.New(rand.NewSource(int64(w)))
			for i := range each {
				k := counter.Key{Namespace: "post", ID: counter.IntID(uint64(r.Intn(objects)))}
				switch i % 3 {
				case 0:
					if _, pos, err := e.Add(k, "like", 1); err != nil || e.Wait(pos) != nil {
						t.Error(err)
					}
				case 1:
					o := counter.Key{Namespace: "post", ID: counter.IntID(uint64(r.Intn(objects)))}
					if _, err := e.Update([]counter.Key{k, o}, func(tx *Tx) error {
						_, err := tx.Add(k, "like", 1)
						return err
					}); err != nil {
						t.Error(err)
					}
				default:
					a := []Add{{Key: k, Deltas: []counter.Delta{{Counter: "like", By: 1}}, Token: fmt.Sprint(w, i)}}
					if _, err := e.AddBatch(a); err != nil || a[0].Err != nil {
						t.Error(err, a[0].Err)
					}
				}
				if i%500 == 0 {
					if err := e.Checkpoint(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	var sum int64
	for n := range objects {
		v, _, _, err := e.Get(counter.Key{Namespace: "post", ID: counter.IntID(uint64(n))}, "like")
		if err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	if sum != workers*each {
		t.Fatalf("sum %d, want %d", sum, workers*each)
	}
	c := crash(t, e, Options{})
	for n := range objects {
		k := counter.Key{Namespace: "post", ID: counter.IntID(uint64(n))}
		v, _, _, _ := e.Get(k, "like")
		if w, _, _, err := c.Get(k, "like"); v != w || err != nil {
			t.Fatalf("object %d: %d before, %d after the crash, %v", n, v, w, err)
		}
	}
}

// A flipped bit in any file is found by verify or refused by Open, or provably
// changes nothing.
func TestFlippedBitsAreFound(t *testing.T) {
	dir := t.TempDir()
	e := open(t, dir, Options{SegmentBytes: 16 << 10})
	for i := range 3000 {
		mustAdd2(t, e, fmt.Sprintf("post:%d", i*7), int64(i))
	}
	if err := e.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		mustAdd2(t, e, fmt.Sprintf("post:%d", i*7), 1)
	}
	if err := e.journal.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var files []string
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "LOCK" {
			files = append(files, p)
		}
		return err
	})
	seed := time.Now().UnixNano()
	t.Logf("seed %d, %d files", seed, len(files))
	r := rand.New(rand.NewSource(seed))
	silent, flips := 0, 12
	if testing.Short() {
		flips = 3
	}
	for _, f := range files {
		good, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for range flips {
			if len(good) == 0 {
				break
			}
			bad := slices.Clone(good)
			at := r.Intn(len(bad))
			bad[at] ^= 1 << r.Intn(8)
			if err := os.WriteFile(f, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			report, err := Verify(dir, VerifyOptions{})
			if err == nil && report.ProblemCount == 0 {
				silent++
				checkUnharmed(t, dir, fmt.Sprintf("%s, byte %d", f, at))
			}
			if err := os.WriteFile(f, good, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d flips were not reported and changed nothing", silent)
}

// checkUnharmed opens a copy of dir and wants every value as it was written.
func checkUnharmed(t *testing.T, dir, what string) {
	t.Helper()
	into := t.TempDir()
	if err := os.CopyFS(into, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	e, err := Open(into, Options{})
	if err != nil {
		return // refused: not silent
	}
	defer e.Close()
	for i := range 3000 {
		want := int64(i)
		if i < 500 {
			want++
		}
		v, _, _, err := e.Get(counter.Key{Namespace: "post", ID: counter.IntID(uint64(i * 7))}, "value")
		if err == nil && v != want {
			t.Fatalf("flip in %s went unnoticed: post:%d = %d, want %d", what, i*7, v, want)
		}
	}
}
