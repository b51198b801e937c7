package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/journal"
	"github.com/tally-counter/tally/pagestore"
)

// recover opens the page store and the journal and brings memory to the state
// of the last acknowledged add.
func (e *Engine) recover() (err error) {
	begun := time.Now()
	if e.store, err = pagestore.Open(e.pagesDir(), pagestore.Options{FS: e.opts.StoreFS, Logger: e.log}); err != nil {
		return err
	}
	from, err := e.loadCheckpoint()
	if err != nil {
		return err
	}
	byNumber := map[uint32]*namespace{}
	for _, ns := range *e.names.Load() {
		byNumber[ns.number] = ns
	}
	r := replayer{e: e, byNumber: byNumber, known: e.nextNamespace}
	e.journal, err = journal.Open(e.journalDir(), journal.Options{
		FS: e.opts.JournalFS, SegmentBytes: e.opts.SegmentBytes, Sync: e.opts.Sync, Interval: e.opts.SyncInterval, Logger: e.log, From: from,
	}, r.record)
	if err != nil {
		return err
	}
	e.counts.checkpointPos.Store(uint64(from))
	e.counts.recoveryNanos = int64(time.Since(begun))
	// The directories that were made must be found again, and dir itself.
	if err := syncDir(e.dir); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(e.dir)); !errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}

// loadCheckpoint reads definitions, directories, sessions and tokens; pages follow
// when they are asked for. It returns where replay starts.
func (e *Engine) loadCheckpoint() (Pos, error) {
	b, err := e.store.Get([]byte{keyManifest}, nil)
	if errors.Is(err, counter.ErrNotFound) {
		return 0, nil // a new directory, or one that never reached its first checkpoint
	}
	if err != nil {
		return 0, err
	}
	m, err := checkManifest(b)
	if err != nil {
		return 0, err
	}
	e.nextNamespace = m.NextNamespace
	names := map[string]*namespace{}
	byNumber := map[uint32]*namespace{}
	err = e.store.Scan([]byte{keyNamespace}, func(_, val []byte) error {
		r, c, err := parseNamespaceRecord(val)
		if err != nil {
			return err
		}
		ns := newNamespace(r.Number, r.Name, len(e.parts))
		ns.columns.Store(c)
		names[ns.name], byNumber[ns.number] = ns, ns
		return nil
	})
	if err != nil {
		return 0, err
	}
	e.names.Store(&names)
	err = e.store.Scan([]byte{keyChunk}, func(key, val []byte) error {
		number, part, name, err := parseTableKey(key, len(e.parts))
		if err != nil {
			return err
		}
		ns := byNumber[number]
		if ns == nil {
			return fmt.Errorf("page store: directory of namespace %d, which is not defined: %w", number, counter.ErrCorrupt)
		}
		if err := e.table(&e.parts[part], ns).LoadChunk(name, val); err != nil {
			return fmt.Errorf("namespace %q, partition %d: %w", ns.name, part, err)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	err = e.store.Scan([]byte{keySession}, func(key, val []byte) error {
		if len(val) != 16 {
			return fmt.Errorf("page store: session %q has %d bytes, want 16: %w", key[1:], len(val), counter.ErrCorrupt)
		}
		e.sessions[string(key[1:])] = &session{epoch: binary.BigEndian.Uint64(val), seq: binary.BigEndian.Uint64(val[8:])}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return m.Journal, e.loadTokens()
}

func (e *Engine) loadTokens() error {
	now := e.nowMilli()
	return e.store.Scan([]byte{keyToken}, func(key, val []byte) error {
		if len(key) != 18 || int(key[1]) >= len(e.parts) || len(val)%tokenEntryBytes != 0 {
			return fmt.Errorf("page store: token block %q of %d bytes is malformed: %w", key, len(val), counter.ErrCorrupt)
		}
		tokens := &e.parts[key[1]].tokens
		number := int64(binary.BigEndian.Uint64(key[2:]))
		if number < now/tokens.spanMilli-tokenSlices {
			tokens.stale = append(tokens.stale, number)
			return nil
		}
		for ; len(val) > 0; val = val[tokenEntryBytes:] {
			tokens.add(parseTokenEntry(val))
			e.tokenCount.Add(1)
		}
		for _, s := range tokens.slices {
			s.saved = len(s.entries)
		}
		return nil
	})
}

// replayer applies the journal's records to memory.
type replayer struct {
	e        *Engine
	byNumber map[uint32]*namespace
	known    uint32 // numbers below it may be of namespaces that were dropped since
	reader   effectReader
	f        effect
}

func (r *replayer) record(end Pos, rec []byte) error {
	r.e.counts.replayedRecords++
	r.e.counts.replayedBytes += int64(len(rec))
	r.reader = effectReader{b: rec}
	for r.reader.next(&r.f) {
		if err := r.apply(&r.f); err != nil {
			return fmt.Errorf("journal, record that ends at %d: %w", end, err)
		}
	}
	if err := r.reader.err; err != nil {
		return fmt.Errorf("journal, record that ends at %d: %w", end, err)
	}
	return nil
}

func (r *replayer) apply(f *effect) error {
	e := r.e
	switch f.op {
	case opNamespace:
		return r.define(f.json)
	case opDrop:
		if ns := r.byNumber[f.ns]; ns != nil {
			e.forget(ns)
			delete(r.byNumber, f.ns)
			if e.lookup(ns.name) == ns {
				e.publish(func(m map[string]*namespace) { delete(m, ns.name) })
			}
		}
		return nil
	case opSession:
		if f.epoch == 0 {
			delete(e.sessions, f.producer)
			e.closedSessions = append(e.closedSessions, f.producer)
			return nil
		}
		e.sessions[f.producer] = &session{epoch: f.epoch, seq: f.seq, dirty: true}
		return nil
	case opToken:
		if f.partition >= len(e.parts) {
			return fmt.Errorf("token of partition %d of %d: %w", f.partition, len(e.parts), counter.ErrCorrupt)
		}
		if tokens := &e.parts[f.partition].tokens; tokens.find(&f.token.fingerprint) == nil {
			tokens.add(f.token)
			e.tokenCount.Add(1)
		}
		return nil
	}
	ns := r.byNumber[f.ns]
	if ns == nil {
		if f.ns < r.known {
			return nil // dropped before the checkpoint was complete
		}
		return fmt.Errorf("effect on namespace %d, which is not defined: %w", f.ns, counter.ErrCorrupt)
	}
	if f.op != opDelete && f.op != opClear {
		for _, c := range f.cells {
			if !hidden(c.Col) && int(c.Col) >= len(ns.columns.Load().defs) {
				return fmt.Errorf("object %s of namespace %q: column %d, but %d counters: %w", f.id, ns.name, c.Col, len(ns.columns.Load().defs), counter.ErrCorrupt)
			}
		}
	}
	at := e.locate(f.id)
	part := &e.parts[at.part]
	t := e.table(part, ns)
	if part.postpone(t, at.key, f.raw) {
		return nil
	}
	err := applyTo(t, &part.cursor, at.key, f)
	e.settle(part)
	return err
}

// define takes over a namespace's definition, unless what is known is newer: the
// checkpoint may have seen more than this place in the journal.
func (r *replayer) define(json []byte) error {
	rec, c, err := parseNamespaceRecord(json)
	if err != nil {
		return err
	}
	e := r.e
	e.nextNamespace = max(e.nextNamespace, rec.Number+1)
	ns := r.byNumber[rec.Number]
	if ns == nil {
		if rec.Number < r.known {
			return nil // dropped before the checkpoint was complete
		}
		ns = newNamespace(rec.Number, rec.Name, len(e.parts))
		r.byNumber[rec.Number] = ns
		e.publish(func(m map[string]*namespace) { m[rec.Name] = ns })
	}
	if have := ns.columns.Load(); len(have.defs) <= len(c.defs) {
		c.expires = c.expires || have.expires
		ns.columns.Store(c)
	}
	return nil
}
