package engine

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/pagestore"
	"github.com/tally-counter/tally/table"
)

// collectBytes is how much of a table is copied under one hold of its lock: at
// memory speed some tens of microseconds.
const collectBytes = 64 << 10

// manifest is what the page store says of itself.
type manifest struct {
	Format        int    `json:"format"`
	Partitions    int    `json:"partitions"`
	NextNamespace uint32 `json:"next_namespace"`
	Journal       Pos    `json:"journal"` // replay starts here
}

const storeFormat = 1

// Checkpoint writes all pages that have changed to the page store, atomically
// with the journal position they stand at, and drops the journal before it.
// Adds go on meanwhile: each range of pages is copied under a short lock, and may
// be newer than the position; replay ends in the same state, since effects are
// absolute. ErrUnavailable: the disk refused; nothing is lost, the journal stays.
func (e *Engine) Checkpoint() error {
	e.keeper.checkpointMu.Lock()
	defer e.keeper.checkpointMu.Unlock()
	begun := time.Now()
	if err := e.catchUpAll(nil); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	c := &checkpoint{e: e}
	err := c.write()
	c.settle(err == nil)
	if err != nil {
		e.counts.checkpointFailures.Add(1)
		return fmt.Errorf("checkpoint: %w", err)
	}
	e.counts.checkpoints.Add(1)
	e.counts.checkpointNanos.Store(int64(time.Since(begun)))
	e.counts.checkpointPos.Store(uint64(c.manifest.Journal))
	for i := range e.parts { // a good moment to give back what nothing lies in: some 50 µs each
		part := &e.parts[i]
		part.mu.Lock()
		part.pool.Trim()
		e.settle(part)
		part.mu.Unlock()
	}
	return e.journal.Trim(c.manifest.Journal)
}

// checkpoint is one pass.
type checkpoint struct {
	e        *Engine
	out      *pagestore.Checkpoint
	manifest manifest
	key      []byte
	chunks   []chunkChange

	tables   []collected
	dropped  []uint32
	closed   []string
	sessions []*session
	tokens   []savedSlice
}

// collected is a table that pages were copied from.
type collected struct {
	ns    *namespace
	part  *partition
	table *table.Table
}

type chunkChange struct{ key, data []byte }

type savedSlice struct {
	slice *tokenSlice
	saved int
}

func (c *checkpoint) write() (err error) {
	e := c.e
	c.manifest = manifest{Format: storeFormat, Partitions: len(e.parts), Journal: e.journal.End()}
	if c.out, err = e.store.Begin(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.out.Abort()
		}
	}()
	e.schemaMu.Lock()
	c.manifest.NextNamespace = e.nextNamespace
	c.dropped = slices.Sorted(slices.Values(e.dropped))
	namespaces := e.sortedNamespaces()
	e.schemaMu.Unlock()
	for _, step := range []func([]*namespace) error{c.pages, c.directory, c.definitions, c.producers, c.tokenSlices} {
		c.out.Section()
		if err := step(namespaces); err != nil {
			return err
		}
	}
	// The journal must reach the disk before the pages that hold its effects:
	// otherwise a crash could keep an add and forget the token that came with it.
	if err := e.journal.Sync(); err != nil {
		return err
	}
	return c.out.Commit()
}

// both walks namespaces in use and dropped ones together, by rising number.
func (c *checkpoint) both(namespaces []*namespace, prefix func(uint32) []byte, live func(*namespace) error) error {
	dropped := c.dropped
	gone := func(below uint32) error {
		for len(dropped) > 0 && dropped[0] < below {
			if err := c.out.DeletePrefix(prefix(dropped[0])); err != nil {
				return err
			}
			dropped = dropped[1:]
		}
		return nil
	}
	for _, ns := range namespaces {
		if err := gone(ns.number); err != nil {
			return err
		}
		if err := live(ns); err != nil {
			return err
		}
	}
	return gone(^uint32(0))
}

func (c *checkpoint) pages(namespaces []*namespace) error {
	prefix := func(ns uint32) []byte { return tablePrefix(keyPage, ns, 0)[:5] }
	return c.both(namespaces, prefix, func(ns *namespace) error {
		for p := range c.e.parts {
			if err := c.collect(ns, &c.e.parts[p]); err != nil {
				return err
			}
		}
		return nil
	})
}

// collect copies what changed in one table, a little under each lock.
func (c *checkpoint) collect(ns *namespace, part *partition) error {
	pageKey := pagePrefix(ns.number, part.index)
	chunkKey := tablePrefix(keyChunk, ns.number, part.index)
	page := func(ch table.Change) error {
		c.key = append(append(c.key[:0], pageKey...), ch.Name...)
		return c.emit(c.key, ch.Data)
	}
	chunk := func(ch table.Change) error {
		c.chunks = append(c.chunks, chunkChange{slices.Concat(chunkKey, ch.Name), slices.Clone(ch.Data)})
		return nil
	}
	var from []byte
	for first := true; first || from != nil; first = false {
		part.mu.Lock()
		t := ns.tables[part.index]
		if t == nil { // never used here, or dropped since: the next checkpoint removes it
			part.mu.Unlock()
			return nil
		}
		if first {
			c.tables = append(c.tables, collected{ns, part, t})
		}
		next, err := t.Collect(from, collectBytes, page, chunk)
		from = slices.Clone(next)
		part.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checkpoint) emit(key, data []byte) error {
	if data == nil {
		return c.out.Delete(key)
	}
	return c.out.Set(key, data)
}

func (c *checkpoint) directory(namespaces []*namespace) error {
	chunks := c.chunks
	upTo := func(limit []byte) error {
		for len(chunks) > 0 && (limit == nil || slices.Compare(chunks[0].key, limit) < 0) {
			if err := c.emit(chunks[0].key, chunks[0].data); err != nil {
				return err
			}
			chunks = chunks[1:]
		}
		return nil
	}
	prefix := func(ns uint32) []byte { return tablePrefix(keyChunk, ns, 0)[:5] }
	// Chunks and dropped namespaces never meet: nothing is collected of the latter.
	for _, d := range c.dropped {
		if err := upTo(prefix(d)); err != nil {
			return err
		}
		if err := c.out.DeletePrefix(prefix(d)); err != nil {
			return err
		}
	}
	return upTo(nil)
}

func (c *checkpoint) definitions(namespaces []*namespace) error {
	b, err := json.Marshal(c.manifest)
	if err != nil {
		return err
	}
	if err := c.out.Set([]byte{keyManifest}, b); err != nil {
		return err
	}
	return c.both(namespaces, namespaceKey, func(ns *namespace) error {
		return c.out.Set(namespaceKey(ns.number), ns.record(ns.columns.Load()))
	})
}

func (c *checkpoint) producers([]*namespace) error {
	e := c.e
	type change struct {
		key, data []byte
	}
	var changes []change
	e.sessionsMu.Lock()
	c.closed, e.closedSessions = e.closedSessions, nil
	all := make(map[string]*session, len(e.sessions))
	for producer, s := range e.sessions {
		all[producer] = s
	}
	e.sessionsMu.Unlock()
	for _, producer := range c.closed {
		if all[producer] == nil {
			changes = append(changes, change{sessionKey(producer), nil})
			all[producer] = nil
		}
	}
	for producer, s := range all {
		if s == nil {
			continue
		}
		s.mu.Lock()
		if s.dirty {
			s.dirty = false
			c.sessions = append(c.sessions, s)
			data := binary.BigEndian.AppendUint64(nil, s.epoch)
			changes = append(changes, change{sessionKey(producer), binary.BigEndian.AppendUint64(data, s.seq)})
		}
		s.mu.Unlock()
	}
	slices.SortFunc(changes, func(a, b change) int { return slices.Compare(a.key, b.key) })
	for _, ch := range changes {
		if err := c.emit(ch.key, ch.data); err != nil {
			return err
		}
	}
	return nil
}

// tokenSlices appends the tokens that are new since the last checkpoint and
// removes the slices that have outlived the retention.
func (c *checkpoint) tokenSlices([]*namespace) error {
	now := c.e.nowMilli()
	for p := range c.e.parts {
		part := &c.e.parts[p]
		part.mu.Lock()
		c.e.tokenCount.Add(-int64(part.tokens.expire(now)))
		oldest := now/part.tokens.spanMilli - tokenSlices
		stale := part.tokens.stale
		part.tokens.stale = nil
		var blocks []chunkChange
		for _, s := range part.tokens.slices {
			if s.saved == len(s.entries) {
				continue
			}
			key := binary.BigEndian.AppendUint64(tokenSlicePrefix(p, s.number), uint64(s.saved))
			data := make([]byte, 0, tokenEntryBytes*(len(s.entries)-s.saved))
			for _, t := range s.entries[s.saved:] {
				data = appendTokenEntry(data, t)
			}
			blocks = append(blocks, chunkChange{key, data})
			c.tokens = append(c.tokens, savedSlice{s, s.saved})
			s.saved = len(s.entries)
		}
		part.mu.Unlock()
		slices.Sort(stale)
		for _, n := range slices.Compact(stale) {
			if n >= oldest {
				continue
			}
			if err := c.out.DeletePrefix(tokenSlicePrefix(p, n)); err != nil {
				return err
			}
		}
		for _, b := range blocks {
			if err := c.out.Set(b.key, b.data); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle tells everything that was copied whether it is on disk now.
func (c *checkpoint) settle(ok bool) {
	e := c.e
	for _, t := range c.tables {
		t.part.mu.Lock()
		if !t.ns.gone {
			t.table.Flushed(ok)
		}
		e.settle(t.part)
		t.part.mu.Unlock()
	}
	if ok {
		e.schemaMu.Lock()
		e.dropped = slices.DeleteFunc(e.dropped, func(n uint32) bool { return slices.Contains(c.dropped, n) })
		e.schemaMu.Unlock()
		return
	}
	for _, s := range c.sessions {
		s.mu.Lock()
		s.dirty = true
		s.mu.Unlock()
	}
	e.sessionsMu.Lock()
	e.closedSessions = append(e.closedSessions, c.closed...)
	e.sessionsMu.Unlock()
	for _, s := range c.tokens {
		s.slice.saved = min(s.slice.saved, s.saved)
	}
}

func checkManifest(b []byte) (m manifest, err error) {
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("page store: the manifest does not parse: %v: %w", err, counter.ErrCorrupt)
	}
	if m.Format != storeFormat {
		return m, fmt.Errorf("page store: format %d; this version reads format %d, use the version of Tally that wrote it: %w", m.Format, storeFormat, counter.ErrInvalid)
	}
	if m.Partitions != 1<<partitionBits {
		return m, fmt.Errorf("page store: %d partitions, want %d: %w", m.Partitions, 1<<partitionBits, counter.ErrCorrupt)
	}
	return m, nil
}
