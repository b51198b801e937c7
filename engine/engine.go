// Package engine is Tally's embedded backend: exact counters of billions of
// objects on one machine, in memory as compact pages, on disk before an answer
// is shown. It is a library; the servers are thin over it.
//
// It is not a cache and not a cluster: it keeps everything, on one machine, in
// one directory that one process holds.
//
// All methods of Engine may be called by any goroutine. Every call returns a
// position (Pos) with its answer; the answer may be shown to anyone only after
// Wait(pos), so that no value that was seen is ever taken back by a crash.
// docs/ARCHITECTURE.md follows an add through the files of this package.
package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/journal"
	"github.com/tally-counter/tally/pagestore"
	"github.com/tally-counter/tally/table"
)

// SyncMode says when an add is acknowledged.
type SyncMode = journal.SyncMode

const (
	SyncAlways   = journal.Always   // once it is on disk: nothing acknowledged is ever lost
	SyncInterval = journal.Interval // at once; a crash of the machine loses up to SyncInterval
	SyncNever    = journal.Never    // at once; the operating system writes when it likes
)

// Options of an engine. Zero values mean the defaults.
type Options struct {
	Sync           SyncMode
	SyncInterval   time.Duration // of SyncInterval; default 1 s
	Memory         int64         // bytes for pages and directory; default half of what the machine or its cgroup has; at least MemoryMin
	ClosedSchema   bool          // refuse namespaces and counters that are not declared
	TokenRetention time.Duration // how long tokens are remembered; default 10 min
	TokensMax      int           // tokens remembered at once, about 32 bytes each; default 8 Mi
	SessionsMax    int           // producers with a session; default 100,000
	Logger         *slog.Logger  // default: discards
	Now            func() time.Time

	JournalFS    journal.FS   // default: the operating system's
	StoreFS      pagestore.FS // default: the operating system's
	SegmentBytes int64        // of the journal; default 64 MiB
}

// MemoryMin is the smallest memory budget, in bytes.
const MemoryMin = 16 << 20

func (o *Options) fill() error {
	if o.SyncInterval == 0 {
		o.SyncInterval = time.Second
	}
	if o.Memory == 0 {
		o.Memory = machineMemory() / 2
	}
	if o.Memory < MemoryMin {
		return fmt.Errorf("a memory budget of %d bytes is too small, the least is %d: %w", o.Memory, MemoryMin, counter.ErrInvalid)
	}
	if o.TokenRetention == 0 {
		o.TokenRetention = 10 * time.Minute
	}
	if o.TokenRetention < time.Second || o.SyncInterval < time.Millisecond {
		return fmt.Errorf("token retention %s (least 1s) or sync interval %s (least 1ms) is too short: %w", o.TokenRetention, o.SyncInterval, counter.ErrInvalid)
	}
	if o.TokensMax == 0 {
		o.TokensMax = 8 << 20
	}
	if o.SessionsMax == 0 {
		o.SessionsMax = 100_000
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}

// Engine is an open data directory.
type Engine struct {
	opts    Options
	dir     string
	log     *slog.Logger
	lock    *os.File
	started time.Time

	partBits uint
	partMask int
	parts    []partition

	names         atomic.Pointer[map[string]*namespace] // replaced as a whole, under schemaMu
	schemaMu      sync.Mutex
	nextNamespace uint32   // under schemaMu
	dropped       []uint32 // numbers whose pages the page store still holds; under schemaMu

	sessionsMu     sync.Mutex
	sessions       map[string]*session
	closedSessions []string // that the page store still holds

	tokenCount atomic.Int64
	memory     atomic.Int64 // bytes of pages and directory
	poisoned   atomic.Pointer[error]

	journal *journal.Journal
	store   *pagestore.Store
	keeper  keeper
	counts  counts
}

// Open opens the data directory dir, creating it if need be, and recovers what
// was acknowledged before.
//
// Errors: ErrLocked when another process holds dir; ErrCorrupt when stored bytes
// are damaged, with the place and the way out; ErrInvalid for options.
func Open(dir string, o Options) (*Engine, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	e := &Engine{opts: o, dir: dir, log: o.Logger, started: o.Now(), partBits: partitionBits, sessions: map[string]*session{}, nextNamespace: 1}
	e.partMask = 1<<e.partBits - 1
	e.names.Store(&map[string]*namespace{})
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("data directory: %w: %w", err, counter.ErrUnavailable)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	e.lock = lock
	e.parts = make([]partition, e.partMask+1)
	for i := range e.parts {
		e.parts[i].index = i
		e.parts[i].pool = table.NewPool()
		e.parts[i].tokens.spanMilli = max(1, o.TokenRetention.Milliseconds()/tokenSlices)
	}
	if err := e.recover(); err != nil {
		return nil, errors.Join(err, e.free())
	}
	e.keeper.start(e)
	return e, nil
}

func (e *Engine) pagesDir() string   { return filepath.Join(e.dir, "pages") }
func (e *Engine) journalDir() string { return filepath.Join(e.dir, "journal") }

// Close stops the engine: what was added is synced and checkpointed, so that the
// next Open has nothing to replay. Calls that still run get ErrClosed or finish.
func (e *Engine) Close() error {
	if !e.poison0(fmt.Errorf("the engine is shut: %w", counter.ErrClosed)) {
		if errors.Is(*e.poisoned.Load(), counter.ErrClosed) {
			return nil
		}
	}
	e.keeper.stop()
	err := e.Checkpoint()
	return errors.Join(err, e.free())
}

// free gives back what an engine holds, in any state of opening.
func (e *Engine) free() error {
	var errs []error
	if e.journal != nil {
		errs = append(errs, e.journal.Close())
	}
	if e.store != nil {
		errs = append(errs, e.store.Close())
	}
	e.lockAll()
	for i := range e.parts {
		part := &e.parts[i]
		for _, t := range part.tables {
			t.Close()
		}
		part.tables = nil
		errs = append(errs, part.pool.Close())
	}
	for _, ns := range *e.names.Load() {
		clear(ns.tables)
		ns.gone = true
	}
	e.names.Store(&map[string]*namespace{})
	e.unlockAll()
	return errors.Join(append(errs, e.lock.Close())...)
}

func (e *Engine) nowMilli() int64 { return e.opts.Now().UnixMilli() }

// Wait returns once the journal is on disk up to pos. ErrUnknown: the disk
// failed before, so what stands at pos may or may not be there after a restart.
func (e *Engine) Wait(pos Pos) error { return e.journal.Wait(pos) }

// Durable is the position up to which answers may be shown: what is on disk, or,
// when SyncMode does not wait for the disk, what was appended.
func (e *Engine) Durable() Pos {
	if e.opts.Sync != SyncAlways && e.journal.Failed() == nil {
		return e.journal.End()
	}
	return e.journal.Durable()
}

// OnDurable has fn called after every commit of the journal, and when it fails.
// Set it once, before the first write.
func (e *Engine) OnDurable(fn func(Pos)) { e.journal.OnDurable(fn) }

// writable reports why nothing can be written, if so. It costs two loads.
func (e *Engine) writable() error {
	if p := e.poisoned.Load(); p != nil {
		return *p
	}
	return e.journal.Failed()
}

// poison records that memory and journal may have parted: from now on nothing is
// written until a restart recovers what the journal holds.
func (e *Engine) poison(cause error) error {
	err := fmt.Errorf("%w; no more writes are taken, restart to recover what was acknowledged: %w", cause, counter.ErrUnavailable)
	if e.poison0(err) {
		e.log.Error("engine stops taking writes", "error", err)
	}
	return fmt.Errorf("%w: %w", cause, counter.ErrUnknown)
}

func (e *Engine) poison0(err error) bool { return e.poisoned.CompareAndSwap(nil, &err) }
