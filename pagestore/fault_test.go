package pagestore

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand"
	randv2 "math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tally-counter/tally/counter"
)

// script is a fixed list of checkpoints and what the store holds after each.
type script struct {
	changes []change
	states  []map[string]string
}

func newScript(r *rand.Rand, n int) script {
	s := script{states: []map[string]string{{}}}
	for i := 0; i < n; i++ {
		ch := randomChange(r)
		next := maps.Clone(s.states[i])
		ch.apply(next)
		s.changes, s.states = append(s.changes, ch), append(s.states, next)
	}
	return s
}

// After a crash at any operation of the file system a checkpoint is there whole
// or not at all, and every committed one is there.
func TestCrashAtEveryOperation(t *testing.T) {
	r := seeded(t)
	sc := newScript(r, 6)
	run := func(crashAt int64, percent int) (ops int64) {
		mem := vfs.NewCrashableMem()
		var committed atomic.Int64
		var committedThen int
		var crashed *vfs.MemFS // set by whichever goroutine of Pebble comes to the operation; read after Close
		var n atomic.Int64
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && n.Add(1) == crashAt {
				committedThen = int(committed.Load())
				crashed = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: randv2.New(randv2.NewPCG(uint64(crashAt), 1))})
			}
			return nil
		}))
		s := open(t, "db", Options{FS: fs})
		for i, ch := range sc.changes {
			if err := ch.write(s, rand.New(rand.NewSource(int64(i)))); err != nil {
				t.Fatal(err)
			}
			committed.Store(int64(i + 1))
		}
		s.mustClose(t)
		if crashed == nil {
			return n.Load()
		}
		s = open(t, "db", Options{FS: crashed})
		got := s.contents(t)
		if !maps.Equal(got, sc.states[committedThen]) && (committedThen == len(sc.changes) || !maps.Equal(got, sc.states[committedThen+1])) {
			t.Fatalf("crash at operation %d, %d %% of unsynced data kept: %d records are neither those of checkpoint %d nor of the next", crashAt, percent, len(got), committedThen)
		}
		s.mustClose(t)
		return n.Load()
	}
	ops := run(0, 0)
	if ops < 50 {
		t.Fatalf("only %d operations", ops)
	}
	for at := int64(1); at <= ops; at++ {
		run(at, []int{0, 50, 100}[at%3])
	}
}

// One write, sync, creation or renaming fails, or all from one on, for want of
// space or for another reason: the store says so, goes on reading, and holds
// whole checkpoints after the next start.
func TestFailingOperations(t *testing.T) {
	r := seeded(t)
	sc := newScript(r, 4)
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		for _, lasting := range []bool{false, true} {
			name := fmt.Sprintf("%v lasting %v", errno, lasting)
			for at := int64(1); ; at++ {
				mem := vfs.NewMem()
				var n atomic.Int64
				var healed atomic.Bool
				fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose || healed.Load() {
						return nil
					}
					if errno == syscall.ENOSPC && (op.Kind == errorfs.OpRemove || op.Kind == errorfs.OpRemoveAll) {
						return nil // removing needs no space
					}
					if m := n.Add(1); m == at || lasting && m > at {
						return &os.PathError{Op: "test", Path: op.Path, Err: errno}
					}
					return nil
				}))
				s, err := Open("db", Options{FS: fs})
				if err != nil {
					if !errors.Is(err, counter.ErrUnavailable) {
						t.Fatalf("%s from operation %d: Open: %v, want ErrUnavailable", name, at, err)
					}
					continue
				}
				committed, unknown := 0, false
				for i, ch := range sc.changes {
					err := ch.write(s, rand.New(rand.NewSource(int64(i))))
					if err != nil {
						if !errors.Is(err, counter.ErrUnavailable) && !errors.Is(err, counter.ErrUnknown) {
							t.Fatalf("%s from operation %d: checkpoint %d: %v, want ErrUnavailable or ErrUnknown", name, at, i, err)
						}
						unknown = errors.Is(err, counter.ErrUnknown)
						break
					}
					committed++
				}
				if got := s.contents(t); !maps.Equal(got, sc.states[committed]) && !(unknown && maps.Equal(got, sc.states[committed+1])) {
					t.Fatalf("%s from operation %d: %d records are not those of checkpoint %d", name, at, len(got), committed)
				}
				s.guard.shut()
				_ = s.db.Close() // may fail on what is broken
				healed.Store(true)
				s = open(t, "db", Options{FS: mem})
				got := s.contents(t)
				if !maps.Equal(got, sc.states[committed]) && (committed == len(sc.changes) || !maps.Equal(got, sc.states[committed+1])) {
					t.Fatalf("%s from operation %d: after a restart %d records are neither those of checkpoint %d nor of the next", name, at, len(got), committed)
				}
				if err := s.Check(); err != nil {
					t.Fatalf("%s from operation %d: after a restart: %v", name, at, err)
				}
				if err := (change{"a/": {keys: map[string]string{"a/new": "1"}}}).write(s, r); err != nil {
					t.Fatalf("%s from operation %d: after a restart: %v", name, at, err)
				}
				s.mustClose(t)
				if n.Load() < at {
					break
				}
			}
		}
	}
}

// Space that returns is used again without a restart.
func TestFullDiskRecovers(t *testing.T) {
	mem := vfs.NewMem()
	var full atomic.Bool
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate) {
			return &os.PathError{Op: "test", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	s := open(t, "db", Options{FS: fs})
	defer s.mustClose(t)
	set := func(k string) error {
		return (change{"a/": {keys: map[string]string{k: "1"}}}).write(s, rand.New(rand.NewSource(1)))
	}
	if err := set("a/1"); err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	err := set("a/2")
	if !errors.Is(err, counter.ErrUnavailable) || !strings.Contains(err.Error(), "free space") {
		t.Fatalf("on a full disk: %v", err)
	}
	full.Store(false)
	if err := set("a/2"); err != nil {
		t.Fatal(err)
	}
	if got := s.contents(t); len(got) != 2 {
		t.Fatalf("the store holds %v", got)
	}
}

// Any bit of any table that flips is found by Check, or was of no consequence;
// no read returns wrong data.
func TestFlippedBits(t *testing.T) {
	r := seeded(t)
	mem := vfs.NewMem()
	s := open(t, "db", Options{FS: mem})
	want := map[string]string{}
	ch := change{"a/": {keys: map[string]string{}}, "b/": {clear: true, keys: map[string]string{}}}
	for i := 0; i < 60; i++ {
		ch["a/"].keys[fmt.Sprintf("a/%03d", i)] = strings.Repeat("v", 1+r.Intn(300))
		ch["b/"].keys[fmt.Sprintf("b/%03d", i)] = strings.Repeat("w", 1+r.Intn(30))
	}
	if err := ch.write(s, r); err != nil {
		t.Fatal(err)
	}
	ch.apply(want)
	s.mustClose(t)

	names, err := mem.List("db")
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		tables++
		path := mem.PathJoin("db", name)
		data := readFile(t, mem, path)
		for at := range data {
			// All of what a table is found and opened by, and samples of its
			// blocks: for each damaged one Pebble searches which bit it was.
			if at > 60 && at < len(data)-700 && r.Intn(80) != 0 {
				continue
			}
			flipped := append([]byte(nil), data...)
			flipped[at] ^= 1 << r.Intn(8)
			writeFile(t, mem, path, flipped)
			s, err := Open("db", Options{FS: mem, ReadOnly: true})
			if err != nil {
				if !errors.Is(err, counter.ErrCorrupt) {
					t.Fatalf("%s byte %d: Open: %v, want ErrCorrupt", name, at, err)
				}
				continue
			}
			err = s.Check()
			if err == nil {
				t.Errorf("%s byte %d of %d: a flipped bit is not detected", name, at, len(data))
			} else if !errors.Is(err, counter.ErrCorrupt) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s byte %d: Check: %v; want ErrCorrupt with the file's name", name, at, err)
			}
			reads := 0
			for k, w := range want { // in random order
				if reads++; reads > 5 {
					break
				}
				v, err := s.Get([]byte(k), nil)
				if err == nil && string(v) != w {
					t.Fatalf("%s byte %d: Get(%q) is silently wrong", name, at, k)
				}
				if err != nil && !errors.Is(err, counter.ErrCorrupt) {
					t.Fatalf("%s byte %d: Get(%q): %v, want ErrCorrupt", name, at, k, err)
				}
			}
			_ = s.Close()
		}
		writeFile(t, mem, path, data)
	}
	if tables == 0 {
		t.Fatal("no tables")
	}
}

// Tables and lists of tables that are missing, cut short or damaged: opening
// says so, or the store is as a whole checkpoint left it. That may be an
// earlier one, when it is the list's end that is damaged: such damage looks like
// a crash, and the journal, which begins later, tells.
func TestDamagedFiles(t *testing.T) {
	r := seeded(t)
	mem := vfs.NewMem()
	s := open(t, "db", Options{FS: mem})
	sc := newScript(r, 5)
	for _, ch := range sc.changes {
		if err := ch.write(s, r); err != nil {
			t.Fatal(err)
		}
	}
	s.mustClose(t)
	names, err := mem.List("db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := mem.PathJoin("db", name)
		table, list := strings.HasSuffix(name, ".sst"), strings.HasPrefix(name, "MANIFEST")
		if !table && !list && !strings.HasPrefix(name, "marker.manifest") {
			continue
		}
		data := readFile(t, mem, path)
		try := func(what string, mayOpen bool) {
			t.Helper()
			s, err := Open("db", Options{FS: mem, ReadOnly: true})
			if err != nil {
				if !errors.Is(err, counter.ErrCorrupt) {
					t.Errorf("%s %s: %v, want ErrCorrupt", name, what, err)
				}
				return
			}
			defer s.mustClose(t)
			if !mayOpen {
				t.Errorf("%s %s: the store opens", name, what)
			}
			got := s.contents(t)
			for _, state := range sc.states {
				if maps.Equal(got, state) {
					return
				}
			}
			t.Errorf("%s %s: %d records are those of no checkpoint", name, what, len(got))
		}
		if err := mem.Remove(path); err != nil {
			t.Fatal(err)
		}
		try("is missing", false)
		if table {
			writeFile(t, mem, path, data[:len(data)/2])
			try("is cut in half", false)
		}
		for at := 0; list && at < len(data); at++ {
			flipped := append([]byte(nil), data...)
			flipped[at] ^= 1 << r.Intn(8)
			writeFile(t, mem, path, flipped)
			try(fmt.Sprintf("byte %d flipped", at), true)
			writeFile(t, mem, path, data[:at])
			try(fmt.Sprintf("cut at byte %d", at), true)
		}
		writeFile(t, mem, path, data)
	}
}

func readFile(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
