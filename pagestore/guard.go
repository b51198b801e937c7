package pagestore

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tally-counter/tally/counter"
)

// guard stands between Pebble and the world, for what Pebble leaves to its user.
//
// A failed write of the manifest, the list of tables, or a failed sync of the
// directory ends the process: nobody knows what is on disk. Instead the guard
// freezes the store: from then on no file is written or removed, so that either
// list finds its tables at the next start, and reads go on. Whoever writes asks
// err when done.
//
// A compaction that finds the disk full is tried again at once and for ever;
// the guard holds it back for a second each time.
type guard struct {
	vfs.FS
	log *slog.Logger

	frozen  atomic.Pointer[error]
	fullAt  atomic.Int64 // unix nanoseconds of the last full disk; 0: never
	closed  chan struct{}
	closing sync.Once
}

const fullDelay = time.Second

func newGuard(fs vfs.FS, log *slog.Logger) *guard {
	return &guard{FS: fs, log: log, closed: make(chan struct{})}
}

// shut ends all holding back.
func (g *guard) shut() { g.closing.Do(func() { close(g.closed) }) }

// err returns why nothing may be written, or nil.
func (g *guard) err() error {
	if err := g.frozen.Load(); err != nil {
		return *err
	}
	return nil
}

// Infof, Errorf and Fatalf make the guard Pebble's logger.
func (g *guard) Infof(string, ...any) {}

func (g *guard) Errorf(format string, args ...any) {
	g.log.Warn("pagestore: " + fmt.Sprintf(format, args...))
}

func (g *guard) Fatalf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !strings.HasPrefix(text, "MANIFEST") {
		panic("pagestore: " + text)
	}
	g.freeze(text)
}

func (g *guard) freeze(why string) {
	err := fmt.Errorf("the list of tables could not be written (%s), so nothing is written until restart; reads go on: %w", why, counter.ErrUnavailable)
	if g.frozen.CompareAndSwap(nil, &err) {
		g.log.Error("pagestore: " + err.Error())
	}
}

func (g *guard) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			g.log.Warn("pagestore: background work failed", "err", err)
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			g.log.Error("pagestore: a table is damaged", "file", info.Path, "err", info.Details)
		},
	}
}

// do makes a change unless the store is frozen, and notes a full disk.
func (g *guard) do(change func() error) error {
	if err := g.err(); err != nil {
		return err
	}
	err := change()
	if err != nil && diskFull(err) {
		g.fullAt.Store(time.Now().UnixNano())
	}
	return err
}

func (g *guard) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &guardedFile{f, g}, nil
}

func (g *guard) Create(name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	if since := time.Since(time.Unix(0, g.fullAt.Load())); since < fullDelay && !strings.Contains(name, stagingName) {
		select {
		case <-time.After(fullDelay - since):
		case <-g.closed:
		}
	}
	err = g.do(func() error { f, err = g.FS.Create(name, c); return err })
	return g.wrap(f, err)
}

func (g *guard) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (f vfs.File, err error) {
	err = g.do(func() error { f, err = g.FS.OpenReadWrite(name, c, opts...); return err })
	return g.wrap(f, err)
}

func (g *guard) ReuseForWrite(old, new string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = g.do(func() error { f, err = g.FS.ReuseForWrite(old, new, c); return err })
	return g.wrap(f, err)
}

func (g *guard) Link(old, new string) error {
	return g.do(func() error { return g.FS.Link(old, new) })
}

func (g *guard) Rename(old, new string) error {
	return g.do(func() error { return g.FS.Rename(old, new) })
}

func (g *guard) Remove(name string) error {
	return g.do(func() error { return g.FS.Remove(name) })
}

func (g *guard) RemoveAll(name string) error {
	return g.do(func() error { return g.FS.RemoveAll(name) })
}

func (g *guard) MkdirAll(dir string, perm os.FileMode) error {
	return g.do(func() error { return g.FS.MkdirAll(dir, perm) })
}

func (g *guard) Unwrap() vfs.FS { return g.FS }

func (g *guard) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardedDir{f, g}, nil
}

// guardedDir is a directory opened for syncing.
type guardedDir struct {
	vfs.File
	g *guard
}

// Sync does not return its failure, since Pebble panics at it.
func (d *guardedDir) Sync() error {
	if d.g.err() == nil {
		if err := d.File.Sync(); err != nil {
			d.g.freeze(err.Error())
		}
	}
	return nil
}

// guardedFile is a file opened for writing.
type guardedFile struct {
	vfs.File
	g *guard
}

func (f *guardedFile) Write(p []byte) (n int, err error) {
	err = f.g.do(func() error { n, err = f.File.Write(p); return err })
	return n, err
}

func (f *guardedFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.g.do(func() error { n, err = f.File.WriteAt(p, off); return err })
	return n, err
}

func (f *guardedFile) Preallocate(off, n int64) error {
	return f.g.do(func() error { return f.File.Preallocate(off, n) })
}

func (f *guardedFile) Sync() error     { return f.g.do(f.File.Sync) }
func (f *guardedFile) SyncData() error { return f.g.do(f.File.SyncData) }

func (f *guardedFile) SyncTo(n int64) (full bool, err error) {
	err = f.g.do(func() error { full, err = f.File.SyncTo(n); return err })
	return full, err
}

var (
	_ vfs.FS        = (*guard)(nil)
	_ io.Closer     = (*guardedFile)(nil)
	_ pebble.Logger = (*guard)(nil)
)

// writable returns why the store takes no changes, or nil.
func (s *Store) writable() error {
	if s.o.ReadOnly {
		return fmt.Errorf("pagestore: %s was opened to be read only: %w", s.dir, counter.ErrInvalid)
	}
	if err := s.guard.err(); err != nil {
		return fmt.Errorf("pagestore: %s: %w", s.dir, err)
	}
	usage, err := s.o.FS.GetDiskUsage(s.dir)
	switch {
	case errors.Is(err, vfs.ErrUnsupported):
	case err != nil:
		return s.fail("the free space of the disk cannot be read", err)
	case usage.AvailBytes < freeBytesMin:
		return fmt.Errorf("pagestore: the disk of %s has %d bytes free and a checkpoint needs %d more than its own size: %w; free space, it is tried again",
			s.dir, usage.AvailBytes, freeBytesMin, counter.ErrUnavailable)
	}
	return nil
}

// freeBytesMin is kept free for the list of tables, whose write must not fail.
const freeBytesMin = 4 << 20
