package engine

import (
	"sync/atomic"
	"time"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/journal"
	"github.com/tally-counter/tally/pagestore"
)

// counts is what the engine counts of its own work.
type counts struct {
	loads              atomic.Int64 // pages read from the page store
	evictedBytes       atomic.Int64
	checkpoints        atomic.Int64
	checkpointFailures atomic.Int64
	checkpointNanos    atomic.Int64
	checkpointPos      atomic.Uint64
	replayedRecords    int64
	replayedBytes      int64
	recoveryNanos      int64
}

// Stats are the engine's figures at one moment. Times are in the unit their name says.
type Stats struct {
	Objects        int64   `json:"objects"`
	Namespaces     int     `json:"namespaces"`
	Counters       int     `json:"counters"`
	MemoryBytes    int64   `json:"memory_bytes"`     // pages and directory
	MemoryBudget   int64   `json:"memory_budget"`    // bytes
	DirectoryBytes int64   `json:"directory_bytes"`  // of those, always in memory
	BytesPerObject float64 `json:"bytes_per_object"` // MemoryBytes over the objects in memory, estimated by pages
	PagesResident  int     `json:"pages_resident"`
	PagesTotal     int     `json:"pages_total"`
	DirtyBytes     int64   `json:"dirty_bytes"`
	PageLoads      int64   `json:"page_loads"` // from the page store, since start
	EvictedBytes   int64   `json:"evicted_bytes"`

	Checkpoints        int64   `json:"checkpoints"`
	CheckpointFailures int64   `json:"checkpoint_failures"`
	CheckpointMillis   float64 `json:"checkpoint_millis"` // the last one took
	CheckpointLagBytes int64   `json:"checkpoint_lag_bytes"`

	Tokens   int64 `json:"tokens"`
	Sessions int   `json:"sessions"`

	RecoveredRecords int64   `json:"recovered_records"`
	RecoveredBytes   int64   `json:"recovered_bytes"`
	RecoveryMillis   float64 `json:"recovery_millis"`
	UptimeSeconds    int64   `json:"uptime_seconds"`
	Writable         bool    `json:"writable"`
	Problem          string  `json:"problem,omitempty"` // why writes are refused

	Journal journal.Stats   `json:"journal"`
	Store   pagestore.Stats `json:"page_store"`
}

// Stats gathers the figures. It takes every partition's lock in turn for a moment.
func (e *Engine) Stats() Stats {
	s := Stats{
		MemoryBudget:       e.opts.Memory,
		PageLoads:          e.counts.loads.Load(),
		EvictedBytes:       e.counts.evictedBytes.Load(),
		Checkpoints:        e.counts.checkpoints.Load(),
		CheckpointFailures: e.counts.checkpointFailures.Load(),
		CheckpointMillis:   float64(e.counts.checkpointNanos.Load()) / 1e6,
		CheckpointLagBytes: int64(e.journal.End()) - int64(e.counts.checkpointPos.Load()),
		Tokens:             e.tokenCount.Load(),
		RecoveredRecords:   e.counts.replayedRecords,
		RecoveredBytes:     e.counts.replayedBytes,
		RecoveryMillis:     float64(e.counts.recoveryNanos) / 1e6,
		UptimeSeconds:      int64(e.opts.Now().Sub(e.started) / time.Second),
		Journal:            e.journal.Stats(),
		Store:              e.store.Stats(),
	}
	if err := e.writable(); err != nil {
		s.Problem = err.Error()
	} else {
		s.Writable = true
	}
	names := *e.names.Load()
	s.Namespaces = len(names)
	for _, ns := range names {
		s.Counters += len(ns.columns.Load().defs)
	}
	for i := range e.parts {
		part := &e.parts[i]
		part.mu.Lock()
		s.MemoryBytes += part.pool.Bytes()
		for _, t := range part.tables {
			s.Objects += t.Rows()
			resident, total := t.Pages()
			s.PagesResident += resident
			s.PagesTotal += total
			s.DirtyBytes += t.DirtyBytes()
			s.DirectoryBytes += t.DirectoryBytes()
		}
		part.mu.Unlock()
	}
	if s.Objects > 0 && s.PagesResident > 0 {
		resident := float64(s.Objects) * float64(s.PagesResident) / float64(s.PagesTotal)
		s.BytesPerObject = float64(s.MemoryBytes) / resident
	}
	e.sessionsMu.Lock()
	s.Sessions = len(e.sessions)
	e.sessionsMu.Unlock()
	return s
}

// Objects is how many objects there are, expired ones that are not yet removed
// included. Right after a restart it finishes recovery first.
func (e *Engine) Objects() int64 {
	if err := e.catchUpAll(nil); err != nil {
		e.log.Warn("objects are counted without what recovery could not apply", "error", err)
	}
	var n int64
	for i := range e.parts {
		part := &e.parts[i]
		part.mu.Lock()
		for _, t := range part.tables {
			n += t.Rows()
		}
		part.mu.Unlock()
	}
	return n
}

// ObjectBytes estimates the memory one object takes: the average of the resident
// part of its table, directory included. ok is false when there is no such object.
func (e *Engine) ObjectBytes(k counter.Key) (n int64, ok bool, err error) {
	at := e.locate(k.ID)
	part := &e.parts[at.part]
	part.mu.Lock()
	defer part.mu.Unlock()
	ns := e.lookup(k.Namespace)
	if ns == nil || ns.tables[at.part] == nil {
		return 0, false, nil
	}
	r, err := e.seek(part, ns, k.ID, at)
	if err != nil || !r.exists(r.now(e)) {
		return 0, false, err
	}
	t := ns.tables[at.part]
	resident, total := t.Pages()
	rows := max(1, t.Rows()*int64(resident)/int64(max(1, total)))
	return max(1, (t.ResidentBytes()+t.DirectoryBytes())/rows), true, nil
}
