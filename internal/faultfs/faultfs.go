// Package faultfs is a file system in memory that fails as it is told to: the
// n-th operation of a kind, a write cut short, a full disk, a sync that fails;
// and it crashes, dropping what was not synced. It is for tests, and serves
// package journal; for Pebble there are vfs.MemFS and vfs/errorfs.
//
// Any goroutine may call its methods.
package faultfs

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/tally-counter/tally/journal"
)

// Kind is a kind of operation.
type Kind string

// The kinds of operation.
const (
	Create      Kind = "create"
	Open        Kind = "open"
	List        Kind = "list"
	Rename      Kind = "rename"
	Remove      Kind = "remove"
	SyncDir     Kind = "syncdir"
	MkdirAll    Kind = "mkdirall"
	Read        Kind = "read"
	Write       Kind = "write"
	Truncate    Kind = "truncate"
	Preallocate Kind = "preallocate"
	Sync        Kind = "sync"
)

// Op is an operation about to be done.
type Op struct {
	Kind Kind
	Name string
	N    int64 // operations before it, of all kinds
	Len  int   // bytes of a write
}

// Fault is what becomes of an operation. The zero Fault lets it succeed.
type Fault struct {
	Err   error
	Short int // bytes that a failing write still writes
}

// FS is the file system.
type FS struct {
	mu     sync.Mutex
	inject func(Op) Fault
	ops    int64

	crashAt int64 // operation before which a crash is to be taken
	random  *rand.Rand
	crashed *FS

	entries map[string]*node // as seen
	durable map[string]*node // as after a crash at worst
	pending []func(map[string]*node)
}

// node is a file, whatever its name.
type node struct {
	data   []byte
	synced []byte // content after a crash at worst
	dirty  map[int64]bool
}

const sectorBytes = 512 // what a disk writes whole or not at all

// New returns an empty file system without faults.
func New() *FS { return &FS{entries: map[string]*node{}, durable: map[string]*node{}} }

// Inject has fn decide the fate of every operation from now on; nil: all succeed.
func (f *FS) Inject(fn func(Op) Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inject = fn
}

// Ops returns how many operations were done.
func (f *FS) Ops() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// FailNth returns an injection that fails the n-th (from 1) operation of kind.
func FailNth(kind Kind, n int64, err error) func(Op) Fault {
	return func(op Op) Fault {
		if op.Kind != kind {
			return Fault{}
		}
		if n--; n != 0 {
			return Fault{}
		}
		return Fault{Err: err, Short: op.Len / 2}
	}
}

// FullAfter returns an injection of a disk with room for bytes more.
func FullAfter(bytes int) func(Op) Fault {
	return func(op Op) Fault {
		switch op.Kind {
		case Create, Preallocate:
			if bytes <= 0 {
				return Fault{Err: syscall.ENOSPC}
			}
		case Write:
			if op.Len > bytes {
				short := max(bytes, 0)
				bytes = 0
				return Fault{Err: syscall.ENOSPC, Short: short}
			}
			bytes -= op.Len
		}
		return Fault{}
	}
}

// Crash returns what a crash at this moment leaves: all that was synced, and of
// the rest what r picks, by sectors of 512 bytes and by changes of a directory
// in their order. f itself goes on.
func (f *FS) Crash(r *rand.Rand) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.crash(r)
}

// CrashAt has f crash right before the operation numbered n; Crashed returns
// what that left.
func (f *FS) CrashAt(n int64, r *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashAt, f.random, f.crashed = n, r, nil
}

// Crashed returns what the crash of CrashAt left, nil before it.
func (f *FS) Crashed() *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.crashed
}

func (f *FS) crash(r *rand.Rand) *FS {
	c := New()
	for name, n := range f.durable {
		c.durable[name] = n
	}
	for _, change := range f.pending[:r.Intn(len(f.pending)+1)] {
		change(c.durable)
	}
	keep := r.Float64()
	survived := map[*node]*node{}
	for name, n := range c.durable {
		s := survived[n]
		if s == nil {
			s = n.afterCrash(r, keep)
			survived[n] = s
		}
		c.durable[name], c.entries[name] = s, s
	}
	return c
}

func (n *node) afterCrash(r *rand.Rand, keep float64) *node {
	data := slices.Clone(n.synced)
	sectors := make([]int64, 0, len(n.dirty))
	for s := range n.dirty {
		sectors = append(sectors, s)
	}
	slices.Sort(sectors)
	for _, s := range sectors {
		if r.Float64() >= keep {
			continue
		}
		from, to := s*sectorBytes, min((s+1)*sectorBytes, int64(len(n.data)))
		if from >= to {
			continue
		}
		data = grown(data, to)
		copy(data[from:to], n.data[from:to])
	}
	if len(n.data) < len(data) && r.Float64() < keep {
		data = data[:len(n.data)]
	}
	return &node{data: data, synced: slices.Clone(data), dirty: map[int64]bool{}}
}

func grown(b []byte, size int64) []byte {
	if int64(len(b)) < size {
		b = append(b, make([]byte, size-int64(len(b)))...)
	}
	return b
}

// begin counts an operation and returns its fate.
func (f *FS) begin(kind Kind, name string, n int) Fault {
	op := Op{kind, name, f.ops, n}
	f.ops++
	if f.random != nil && op.N == f.crashAt {
		f.crashed = f.crash(f.random)
	}
	if f.inject == nil {
		return Fault{}
	}
	fault := f.inject(op)
	if fault.Err != nil {
		fault.Err = &fs.PathError{Op: string(kind), Path: name, Err: fault.Err}
	}
	return fault
}

// change makes a change of the directory, durable after SyncDir.
func (f *FS) change(do func(map[string]*node)) {
	do(f.entries)
	f.pending = append(f.pending, do)
}

func (f *FS) MkdirAll(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begin(MkdirAll, dir, 0).Err
}

func (f *FS) List(dir string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(List, dir, 0).Err; err != nil {
		return nil, err
	}
	var names []string
	for name := range f.entries {
		if filepath.Dir(name) == dir {
			names = append(names, filepath.Base(name))
		}
	}
	return names, nil
}

func (f *FS) Create(name string) (journal.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(Create, name, 0).Err; err != nil {
		return nil, err
	}
	n := &node{dirty: map[int64]bool{}}
	f.change(func(m map[string]*node) { m[name] = n })
	return &file{f, n, name, true}, nil
}

func (f *FS) Open(name string) (journal.File, error)     { return f.open(name, true) }
func (f *FS) OpenRead(name string) (journal.File, error) { return f.open(name, false) }

func (f *FS) open(name string, writable bool) (journal.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(Open, name, 0).Err; err != nil {
		return nil, err
	}
	n := f.entries[name]
	if n == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &file{f, n, name, writable}, nil
}

func (f *FS) Rename(old, new string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(Rename, old, 0).Err; err != nil {
		return err
	}
	n := f.entries[old]
	if n == nil {
		return &fs.PathError{Op: "rename", Path: old, Err: fs.ErrNotExist}
	}
	f.change(func(m map[string]*node) {
		delete(m, old)
		m[new] = n
	})
	return nil
}

func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(Remove, name, 0).Err; err != nil {
		return err
	}
	if f.entries[name] == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	f.change(func(m map[string]*node) { delete(m, name) })
	return nil
}

func (f *FS) SyncDir(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin(SyncDir, dir, 0).Err; err != nil {
		return err
	}
	for _, change := range f.pending {
		change(f.durable)
	}
	f.pending = nil
	return nil
}

// Content returns a copy of a file, nil when there is none.
func (f *FS) Content(name string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.entries[name]; n != nil {
		return slices.Clone(n.data)
	}
	return nil
}

// SetContent makes a file, durably, what data says; nil removes it.
func (f *FS) SetContent(name string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range []map[string]*node{f.entries, f.durable} {
		delete(m, name)
		if data != nil {
			m[name] = &node{data: slices.Clone(data), synced: slices.Clone(data), dirty: map[int64]bool{}}
		}
	}
}

// Names returns all files, sorted.
func (f *FS) Names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for name := range f.entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Clone returns a copy of all files, synced, without faults.
func (f *FS) Clone() *FS {
	c := New()
	for _, name := range f.Names() {
		c.SetContent(name, f.Content(name))
	}
	return c
}

type file struct {
	fs       *FS
	n        *node
	name     string
	writable bool
}

func (h *file) ReadAt(p []byte, off int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.fs.begin(Read, h.name, len(p)).Err; err != nil {
		return 0, err
	}
	if off >= int64(len(h.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, h.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *file) WriteAt(p []byte, off int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	fault := h.fs.begin(Write, h.name, len(p))
	if err := h.mayWrite(); err != nil {
		return 0, err
	}
	if fault.Err != nil {
		p = p[:min(fault.Short, len(p))]
	}
	if len(p) > 0 {
		for s := int64(len(h.n.data)) / sectorBytes; s < off/sectorBytes; s++ {
			h.n.dirty[s] = true // the hole before it
		}
		h.n.data = grown(h.n.data, off+int64(len(p)))
		copy(h.n.data[off:], p)
		for s := off / sectorBytes; s <= (off+int64(len(p))-1)/sectorBytes; s++ {
			h.n.dirty[s] = true
		}
	}
	return len(p), fault.Err
}

func (h *file) mayWrite() error {
	if h.writable {
		return nil
	}
	return fmt.Errorf("faultfs: %s was opened for reading", h.name)
}

func (h *file) Size() (int64, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	return int64(len(h.n.data)), nil
}

func (h *file) Truncate(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.fs.begin(Truncate, h.name, 0).Err; err != nil {
		return err
	}
	for s := size / sectorBytes; s*sectorBytes < int64(len(h.n.data)); s++ {
		h.n.dirty[s] = true // what grows there again reads as zero
	}
	h.n.data = grown(h.n.data, size)[:size]
	return h.mayWrite()
}

func (h *file) Preallocate(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.fs.begin(Preallocate, h.name, 0).Err; err != nil {
		return err
	}
	h.n.data = grown(h.n.data, size)
	return h.mayWrite()
}

// Sync makes the file durable. One that fails makes some of it durable, and
// what it drops no later Sync writes: the kernel has forgotten it.
func (h *file) Sync() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err := h.fs.begin(Sync, h.name, 0).Err; err != nil {
		h.n.dirty = map[int64]bool{}
		return err
	}
	h.n.synced = grown(h.n.synced, int64(len(h.n.data)))[:len(h.n.data)]
	for s := range h.n.dirty {
		from, to := s*sectorBytes, min((s+1)*sectorBytes, int64(len(h.n.data)))
		if from < to {
			copy(h.n.synced[from:to], h.n.data[from:to])
		}
	}
	h.n.dirty = map[int64]bool{}
	return nil
}

func (h *file) Close() error { return nil }
