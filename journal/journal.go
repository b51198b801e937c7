// Package journal is an append-only log of records: what a change is written
// to, and synced, before anyone is told of it.
//
// Records are byte strings that mean nothing to this package. Append copies a
// record into a buffer and names the position after it; the first who waits for
// a position writes the buffer as a block and syncs it, for everyone who waits
// (group commit). Open reads the records back in order. It is not a queue and
// keeps no index: records are read only when a journal is opened.
//
// All methods of Journal may be called by any goroutine at any time, Close once
// and last. Files are laid out as docs/format/journal.md says.
package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tally-counter/tally/counter"
)

// Pos is a byte offset in the stream of all records ever appended, each with
// its length before it. It never goes back, and does not depend on how records
// were grouped into blocks and segments.
type Pos uint64

// SyncMode says what an acknowledgement waits for.
type SyncMode uint8

const (
	Always   SyncMode = iota // Wait waits for the disk: a crash loses nothing acknowledged
	Interval                 // synced every Options.Interval: a crash of the machine loses up to that, of the process up to 10 ms
	Never                    // written within 10 ms and synced by the operating system when it likes
)

func (m SyncMode) String() string {
	switch m {
	case Always:
		return "always"
	case Interval:
		return "interval"
	case Never:
		return "never"
	}
	return fmt.Sprintf("syncmode(%d)", uint8(m))
}

// ParseSyncMode reads what String writes.
func ParseSyncMode(s string) (SyncMode, error) {
	for _, m := range []SyncMode{Always, Interval, Never} {
		if s == m.String() {
			return m, nil
		}
	}
	return 0, fmt.Errorf("sync mode %q is unknown; use always, interval or never: %w", s, counter.ErrInvalid)
}

// RecordBytesMax is the longest record Append takes.
const RecordBytesMax = 16 << 20

// Options of Open. The zero value is ready for use.
type Options struct {
	FS             FS            // nil: the operating system's
	SegmentBytes   int64         // size of a segment file, 4 KiB to 1 GiB; 0: 64 MiB
	Sync           SyncMode      // zero: Always
	Interval       time.Duration // between syncs in mode Interval, at least 1 ms; 0: 1 s
	BufferBytesMax int           // Admit waits while more bytes are unwritten; 0: 16 MiB
	Logger         *slog.Logger  // nil: none
	From           Pos           // replay starts here: where a record ends, or 0
}

func (o *Options) fill() error {
	if o.FS == nil {
		o.FS = OS
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	orDefault(&o.SegmentBytes, 64<<20)
	orDefault(&o.Interval, time.Second)
	orDefault(&o.BufferBytesMax, 16<<20)
	switch {
	case o.SegmentBytes < 4<<10 || o.SegmentBytes > 1<<30:
		return fmt.Errorf("journal: segment size %d is outside 4 KiB to 1 GiB: %w", o.SegmentBytes, counter.ErrInvalid)
	case o.Sync > Never:
		return fmt.Errorf("journal: sync mode %d is unknown: %w", o.Sync, counter.ErrInvalid)
	case o.Interval < time.Millisecond:
		return fmt.Errorf("journal: sync interval %v is below 1 ms: %w", o.Interval, counter.ErrInvalid)
	case o.BufferBytesMax < 0 || o.BufferBytesMax > blockBytesMax/4:
		return fmt.Errorf("journal: buffer of %d bytes is outside 0 to %d: %w", o.BufferBytesMax, blockBytesMax/4, counter.ErrInvalid)
	}
	return nil
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Journal is an open journal.
//
// Invariants: proven <= durable <= written <= end; what lies between
// written and end is in buf. mu and segsMu are never held together.
type Journal struct {
	o    Options
	dir  string
	id   [16]byte
	salt salt
	log  *slog.Logger

	end       atomic.Uint64 // written under mu
	durable   atomic.Uint64 // written under mu
	buffered  atomic.Int64  // bytes of records in buf; written under mu
	failure   atomic.Pointer[failure]
	onDurable atomic.Pointer[func(Pos)]

	mu      sync.Mutex
	buf     []byte          // the block being filled: room for its header, then records
	spare   []byte          // the other buffer, while the committer does not use it
	since   time.Time       // when buf received its first record
	written Pos             // everything before it is in the file
	want    Pos             // someone needs everything before it durable, whatever the mode
	asleep  bool            // the committer waits for wake
	dozing  bool            // asleep, and soon to look by itself
	closing bool            // Close was called
	due     []chan struct{} // closed when all that is written is durable
	next    chan struct{}   // closed when buf is durable; nil while nobody waits
	room    chan struct{}   // closed when buf is taken; nil while nobody waits in Admit

	wake    chan struct{} // capacity 1
	stopped chan struct{} // closed when the committer has ended

	// Owned by who holds turn: the committer, or a waiter that commits for
	// itself. turn is taken before mu.
	turn     sync.Mutex
	stuck    []byte // a block that met a full disk, for the committer to write; under mu too
	stuckEnd Pos
	file     File
	fileName string
	off      int64         // where the next block goes
	proven   Pos           // durable position in the newest durable block
	last     time.Time     // of the last sync
	prepared chan prepared // not nil while a next segment is being, or has been, prepared

	segsMu sync.Mutex
	segs   []segment // from the oldest to the one being written

	stats recorder
}

// Open opens or creates the journal in dir and calls replay for each record
// from o.From on, in order, with the position after the record; rec is valid
// during the call. What a crash left half written at the end was never
// acknowledged: it is cut off, and the log says how many bytes.
//
// Errors: counter.ErrCorrupt when acknowledged bytes are damaged or missing,
// with the segment, the byte and the way out; counter.ErrUnavailable when the
// file system refuses; counter.ErrInvalid for bad options or a newer format;
// and what replay returned.
func Open(dir string, o Options, replay func(end Pos, rec []byte) error) (*Journal, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	j := &Journal{
		o: o, dir: dir, log: o.Logger,
		buf: newBlock(nil), wake: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	if err := o.FS.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("journal: directory %s cannot be made: %w (%v)", dir, counter.ErrUnavailable, err)
	}
	found, err := readAll(o.FS, dir, o.From, replay)
	if err != nil {
		return nil, err
	}
	if err := j.start(found); err != nil {
		return nil, err
	}
	go j.run()
	return j, nil
}

// start makes j ready to append after what recovery found.
func (j *Journal) start(found recovered) error {
	fs := j.o.FS
	if err := removeIfThere(fs, filepath.Join(j.dir, nextName)); err != nil {
		return unavailable("the leftover "+nextName+" cannot be removed", err)
	}
	if len(found.segs) == 0 {
		j.id = newID()
		f, err := createSegment(fs, j.dir, j.id, 0, j.o.SegmentBytes)
		if err != nil {
			return unavailable("the first segment cannot be created in "+j.dir, err)
		}
		j.file, j.off = f, segmentHeaderBytes
		j.segs = []segment{{0, segmentName(0)}}
	} else {
		f, err := reopenSegment(fs, j.dir, found, j.o.SegmentBytes, j.log)
		if err != nil {
			return err
		}
		j.id, j.file, j.off, j.segs = found.last.id, f, found.last.off, found.segs
	}
	if found.clean {
		if err := errors.Join(removeIfThere(fs, filepath.Join(j.dir, cleanName)), fs.SyncDir(j.dir)); err != nil {
			j.file.Close()
			return unavailable("the clean-shutdown mark cannot be removed", err)
		}
	}
	j.fileName = j.segs[len(j.segs)-1].name
	j.salt = saltOf(j.id)
	j.written, j.proven = found.last.end, found.last.proven
	j.end.Store(uint64(j.written))
	j.durable.Store(uint64(j.written))
	return nil
}

func newID() (id [16]byte) {
	rand.Read(id[:]) // never fails: it ends the process instead
	return id
}

func unavailable(what string, err error) error {
	return fmt.Errorf("journal: %s: %w (%v)", what, counter.ErrUnavailable, err)
}

// ID returns the 16 random bytes that name the database this journal belongs to.
func (j *Journal) ID() [16]byte { return j.id }

// End returns the position after the last record appended. One atomic load.
func (j *Journal) End() Pos { return Pos(j.end.Load()) }

// Durable returns the position before which everything is on disk, in every
// sync mode. One atomic load.
func (j *Journal) Durable() Pos { return Pos(j.durable.Load()) }

// OnDurable has fn called after every commit with what Durable then returns,
// and when the journal fails, so that parked replies can be resolved by Wait,
// which then does not block. The committer calls fn, with no lock held: what fn
// spends, the next commit waits for. It replaces the fn set before.
func (j *Journal) OnDurable(fn func(durable Pos)) { j.onDurable.Store(&fn) }

// Failed returns why the journal acknowledges nothing at present, or nil. It
// wraps counter.ErrUnavailable. One atomic load when all is well.
func (j *Journal) Failed() error {
	if f := j.failure.Load(); f != nil {
		return f.err
	}
	return nil
}

// Sync returns when everything appended before is on disk, in every sync mode.
// Errors as Wait.
func (j *Journal) Sync() error { return j.waitDurable(j.End()) }

// Trim removes the segments that hold nothing from pos on. Records before pos
// may stay: the unit is the segment.
func (j *Journal) Trim(pos Pos) error {
	j.segsMu.Lock()
	defer j.segsMu.Unlock()
	removed := false
	for len(j.segs) > 1 && j.segs[1].start <= pos {
		if err := removeIfThere(j.o.FS, filepath.Join(j.dir, j.segs[0].name)); err != nil {
			return unavailable("segment "+j.segs[0].name+" cannot be removed", err)
		}
		j.segs, removed = j.segs[1:], true
	}
	if !removed {
		return nil
	}
	if err := j.o.FS.SyncDir(j.dir); err != nil {
		return unavailable("the directory cannot be synced after removing segments", err)
	}
	return nil
}

// Close commits what was appended, writes the clean-shutdown mark and releases
// everything. Its error is counter.ErrUnknown when records may be lost that
// nobody was told are safe.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closing {
		j.mu.Unlock()
		return fmt.Errorf("journal: closed before: %w", counter.ErrClosed)
	}
	j.closing = true
	j.wakeLocked()
	j.mu.Unlock()
	<-j.stopped

	j.dropPrepared()
	f := j.failure.Load()
	if f != nil {
		j.file.Close()
		return fmt.Errorf("journal: records from position %d on may not be on disk: %w (%v)", j.Durable(), counter.ErrUnknown, f.err)
	}
	// The rest of the segment is only reserved space.
	err := errors.Join(j.file.Truncate(j.off), j.file.Sync(), j.file.Close())
	if err == nil {
		err = writeClean(j.o.FS, j.dir, j.id, j.Durable())
	}
	if err != nil {
		return unavailable("all records are on disk, but the clean-shutdown mark is not", err)
	}
	return nil
}
