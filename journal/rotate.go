package journal

import (
	"fmt"
	"path/filepath"
)

// rotate closes the current segment, all of it durable, and goes on in a new
// one that starts at start.
func (j *Journal) rotate(start Pos) error {
	if err := j.syncFile(); err != nil {
		return err
	}
	if j.prepared == nil {
		j.prepare()
	}
	p := <-j.prepared
	j.prepared = nil
	if p.err != nil {
		return fmt.Errorf("the next segment cannot be created: %w", p.err)
	}
	if err := nameSegment(j.o.FS, j.dir, p.file, j.id, start); err != nil {
		p.file.Close()
		return err
	}
	j.file.Close() // synced and only read from here on: nothing can be lost
	j.file, j.fileName, j.off = p.file, segmentName(start), segmentHeaderBytes
	j.segsMu.Lock()
	j.segs = append(j.segs, segment{start, j.fileName})
	j.segsMu.Unlock()
	return nil
}

// prepared is the segment that comes next, or why there is none.
type prepared struct {
	file File
	err  error
}

// prepareAhead starts preparing the next segment once half of this one is used.
func (j *Journal) prepareAhead() {
	if j.prepared == nil && j.off >= j.o.SegmentBytes/2 {
		j.prepare()
	}
}

// prepare reserves the next segment's space in the background. The goroutine
// ends by itself; rotate or dropPrepared takes its result.
func (j *Journal) prepare() {
	out := make(chan prepared, 1)
	j.prepared = out
	go func() {
		f, err := reserveSegment(j.o.FS, filepath.Join(j.dir, nextName), j.o.SegmentBytes)
		if err != nil {
			j.log.Warn("journal: the next segment cannot be prepared; writes stop when the current one is full",
				"dir", j.dir, "segment_bytes", j.o.SegmentBytes, "err", err)
		}
		out <- prepared{f, err}
	}()
}

// dropPrepared removes a segment that was prepared and is not needed.
func (j *Journal) dropPrepared() {
	if j.prepared == nil {
		return
	}
	if p := <-j.prepared; p.err == nil {
		p.file.Close()
	}
	j.prepared = nil
	if err := removeIfThere(j.o.FS, filepath.Join(j.dir, nextName)); err != nil {
		j.log.Warn("journal: the prepared segment stays until the next start", "err", err)
	}
}
