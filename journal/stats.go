package journal

import (
	"slices"
	"sync"
	"time"
)

// Stats are figures of an open journal.
type Stats struct {
	Bytes    int64 `json:"bytes"`    // of all segment files, reserved space included
	Segments int   `json:"segments"` // files
	First    Pos   `json:"first"`    // first position that is kept
	End      Pos   `json:"end"`
	Durable  Pos   `json:"durable"`
	Lag      int64 `json:"lag"` // bytes appended and not durable

	// Since Open:
	Blocks     int64 `json:"blocks"`      // written
	BlockBytes int64 `json:"block_bytes"` // of those, headers included
	Syncs      int64 `json:"syncs"`

	// Time of a sync, over the last 1,024:
	SyncP50 time.Duration `json:"sync_p50"`
	SyncP99 time.Duration `json:"sync_p99"`
	SyncMax time.Duration `json:"sync_max"`
}

// Stats returns the figures of this moment; it sorts 1,024 numbers.
func (j *Journal) Stats() Stats {
	s := j.stats.read()
	j.segsMu.Lock()
	s.Segments, s.First = len(j.segs), j.segs[0].start
	j.segsMu.Unlock()
	s.Bytes = int64(s.Segments) * j.o.SegmentBytes
	s.Durable, s.End = j.Durable(), j.End() // in this order, so that Lag is not negative
	s.Lag = int64(s.End - s.Durable)
	return s
}

// recorder collects what the committer does.
type recorder struct {
	mu    sync.Mutex
	s     Stats
	times [1024]time.Duration // ring of the last syncs
}

func (r *recorder) block(bytes int) {
	r.mu.Lock()
	r.s.Blocks++
	r.s.BlockBytes += int64(bytes)
	r.mu.Unlock()
}

func (r *recorder) sync(d time.Duration) {
	r.mu.Lock()
	r.times[r.s.Syncs%int64(len(r.times))] = d
	r.s.Syncs++
	r.mu.Unlock()
}

func (r *recorder) read() Stats {
	r.mu.Lock()
	s, times := r.s, r.times
	r.mu.Unlock()
	if n := int(min(s.Syncs, int64(len(times)))); n > 0 {
		recent := times[:n]
		slices.Sort(recent)
		s.SyncP50, s.SyncP99, s.SyncMax = recent[n/2], recent[n*99/100], recent[n-1]
	}
	return s
}
