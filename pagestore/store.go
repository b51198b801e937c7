// Package pagestore keeps pages and other small records on disk, sorted by key,
// and changes them in atomic checkpoints. It is Pebble behind our few methods:
// no type of Pebble leaves it but the file system that Options takes.
//
// A change is only ever a whole checkpoint: its records are written and synced
// as sorted tables and then become visible together, on disk and to readers.
// There is no write-ahead log to replay. It is not for single small writes.
//
// Any goroutine may call the methods of a Store. Close comes last, after every
// other call has returned.
package pagestore

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tally-counter/tally/counter"
)

// Options of Open. The zero value is ready for use.
type Options struct {
	FS           vfs.FS       // nil: the operating system's
	CacheBytes   int64        // cache of 4 KiB blocks; 0: 8 MiB
	MaxOpenFiles int          // files kept open, at least 16; 0: 256
	ReadOnly     bool         // nothing on disk is changed; the store must exist
	Logger       *slog.Logger // nil: none
}

const (
	blockBytes    = 4 << 10   // a few pages; what one read from disk brings in
	memTableBytes = 256 << 10 // stays empty: records come as tables
	format        = pebble.FormatTableFormatV6
	stagingName   = "staging" // tables of a checkpoint that is not committed
)

// Store is an open page store.
type Store struct {
	dir   string
	o     Options
	opts  *pebble.Options
	db    *pebble.DB
	guard *guard
	open  atomic.Bool // a checkpoint is being built
}

// Open opens or creates the store in dir. Errors: counter.ErrCorrupt,
// counter.ErrUnavailable, counter.ErrInvalid for bad options, and
// counter.ErrNotFound when a store to be read only is not there.
func Open(dir string, o Options) (*Store, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 8 << 20
	}
	if o.MaxOpenFiles == 0 {
		o.MaxOpenFiles = 256
	}
	if o.CacheBytes < 0 || o.MaxOpenFiles < 16 {
		return nil, fmt.Errorf("pagestore: a cache of %d bytes and %d open files are outside what is possible, 0 and 16 up: %w", o.CacheBytes, o.MaxOpenFiles, counter.ErrInvalid)
	}
	s := &Store{dir: dir, o: o, guard: newGuard(o.FS, o.Logger)}
	if err := s.checkMarker(); err != nil {
		return nil, s.openError(err)
	}
	s.opts = s.pebbleOptions()
	db, err := pebble.Open(dir, s.opts)
	if err != nil {
		return nil, s.openError(err)
	}
	s.db = db
	if !o.ReadOnly {
		err = s.clearStaging()
	}
	if err == nil {
		err = s.guard.err()
	}
	if err != nil {
		s.guard.shut()
		return nil, joinClose(s.openError(err), db)
	}
	return s, nil
}

func (s *Store) pebbleOptions() *pebble.Options {
	o := &pebble.Options{
		FS:                          s.guard,
		Logger:                      s.guard,
		EventListener:               s.guard.listener(),
		CacheSize:                   s.o.CacheBytes,
		MaxOpenFiles:                s.o.MaxOpenFiles,
		ReadOnly:                    s.o.ReadOnly,
		ErrorIfNotExists:            s.o.ReadOnly,
		FormatMajorVersion:          format,
		MemTableSize:                memTableBytes,
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, 1 },
		L0CompactionThreshold:       2,
		MaxManifestFileSize:         1 << 20,
		MemTableStopWritesThreshold: 2,
	}
	o.Experimental.FileCacheShards = 2
	o.Experimental.ReadSamplingMultiplier = -1 // pages are cached above: reads say nothing about what to compact
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockBytes
		o.Levels[i].IndexBlockSize = 8 * blockBytes
		o.Levels[i].Compression = func() *block.CompressionProfile { return sstable.NoCompression } // pages are packed bits
	}
	o.EnsureDefaults()
	return o
}

// Get appends the value of key to dst. Errors: counter.ErrNotFound,
// counter.ErrCorrupt, counter.ErrUnavailable; dst is returned as it was.
func (s *Store) Get(key, dst []byte) ([]byte, error) {
	v, closer, err := s.db.Get(key)
	if err != nil {
		return dst, s.getError(key, err)
	}
	dst = append(dst, v...)
	if err := closer.Close(); err != nil {
		return dst, s.getError(key, err)
	}
	return dst, nil
}

// Scan calls fn for each record whose key begins with prefix, ascending, as
// they stood when Scan was called. key and val are valid during the call. It
// ends early with what fn returns.
func (s *Store) Scan(prefix []byte, fn func(key, val []byte) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return s.fail("scanning failed", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return joinClose(s.fail("scanning failed", err), it)
		}
		if err := fn(it.Key(), v); err != nil {
			return joinClose(err, it)
		}
	}
	if err := it.Close(); err != nil {
		return s.fail("scanning failed", err)
	}
	return nil
}

// after returns the lowest key above all that begin with prefix, nil when
// there is none.
func after(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}

// Compact rewrites everything into one level: reads get shorter and deleted
// records give their space back. It takes as long as writing the whole store.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.writable(); err != nil {
		return err
	}
	if err := s.db.Compact(ctx, nil, []byte{0xff, 0xff, 0xff, 0xff}, false); err != nil {
		return s.fail("compaction failed", err)
	}
	return nil
}

// Close releases everything. Nothing committed is lost without it.
func (s *Store) Close() error {
	s.guard.shut()
	if err := s.db.Close(); err != nil {
		return s.fail("closing failed", err)
	}
	return nil
}
