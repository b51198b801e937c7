package journal

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"

	"github.com/tally-counter/tally/counter"
)

// The hot path: what every add and every reply pass through. BenchmarkAppend
// and BenchmarkCommit hold its cost.

// What nobody waits for is written when it has this many bytes or is this old.
const (
	flushBytes = 256 << 10
	flushDelay = 10 * time.Millisecond
)

// Append copies rec, 1 to RecordBytesMax bytes, into the buffer and returns the
// position after it. It never blocks on the disk, so it may be called under the
// caller's locks; whoever appends called Admit before taking them. After a
// sticky failure the record is dropped and Wait tells so.
func (j *Journal) Append(rec []byte) Pos {
	if len(rec) == 0 || len(rec) > RecordBytesMax {
		panic(badRecord(len(rec)))
	}
	j.mu.Lock()
	end := j.appendLocked(rec)
	if j.asleep && !j.dozing && (j.since.IsZero() || len(j.buf) >= flushBytes) {
		j.wakeLocked()
	}
	if j.since.IsZero() {
		j.since = time.Now()
	}
	j.mu.Unlock()
	return end
}

// appendLocked frames rec into the buffer. An empty rec is a mark.
func (j *Journal) appendLocked(rec []byte) Pos {
	framed := uvarintBytes(uint64(len(rec))) + len(rec)
	end := j.end.Load() + uint64(framed)
	j.end.Store(end)
	if f := j.failure.Load(); f != nil && f.sticky {
		return Pos(end)
	}
	if len(j.buf)+framed > blockBytesMax {
		panic(overrun(len(j.buf)))
	}
	j.buf = binary.AppendUvarint(j.buf, uint64(len(rec)))
	j.buf = append(j.buf, rec...)
	j.buffered.Store(int64(len(j.buf) - blockHeaderBytes))
	return Pos(end)
}

func uvarintBytes(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }

func badRecord(n int) string {
	return fmt.Sprintf("journal: a record of %d bytes, allowed are 1 to %d", n, RecordBytesMax)
}

func overrun(n int) string {
	return fmt.Sprintf("journal: %d bytes are unwritten: records are appended without Admit", n)
}

// wakeLocked wakes the committer when it sleeps.
func (j *Journal) wakeLocked() {
	if j.asleep {
		j.asleep = false
		j.wake <- struct{}{} // never blocks: one token per sleep
	}
}

// Admit returns when there is room to append; call it before taking locks. It
// waits while more than Options.BufferBytesMax bytes are unwritten, so memory
// is bounded by that and by one group of records per caller admitted.
//
// Errors: counter.ErrUnavailable at once while the journal fails, with what to
// do; counter.ErrBusy when ctx ends first. In both nothing was done.
func (j *Journal) Admit(ctx context.Context) error {
	for {
		if f := j.failure.Load(); f != nil {
			return f.err
		}
		if j.buffered.Load() <= int64(j.o.BufferBytesMax) {
			return nil
		}
		j.mu.Lock()
		if j.failure.Load() != nil || j.buffered.Load() <= int64(j.o.BufferBytesMax) {
			j.mu.Unlock()
			continue
		}
		if j.room == nil {
			j.room = make(chan struct{})
		}
		room := j.room
		j.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return fmt.Errorf("journal: the buffer stayed full until the caller gave up: %w (%v)", counter.ErrBusy, context.Cause(ctx))
		}
	}
}

// Wait returns nil when what was appended before pos may be acknowledged: in
// mode Always when it is on disk, in the other modes at once while all is well. Its error wraps
// counter.ErrUnknown: the journal failed before pos was on disk, so that nobody
// can say whether it will be found there. While a disk is full Wait holds on
// for 5 s, since the committer tries again.
func (j *Journal) Wait(pos Pos) error {
	if j.Durable() >= pos {
		return nil
	}
	if j.o.Sync == Always {
		j.lead()
	} else if j.failure.Load() == nil {
		return nil
	}
	return j.waitDurable(pos)
}

func (j *Journal) waitDurable(pos Pos) error {
	for j.Durable() < pos {
		j.mu.Lock()
		done, err := j.waiterLocked(pos)
		j.mu.Unlock()
		if err != nil {
			return err
		}
		if done != nil {
			<-done
		}
	}
	return nil
}

// waiterLocked returns the channel that is closed when pos is durable or never
// will be; nil when pos is durable by now.
func (j *Journal) waiterLocked(pos Pos) (<-chan struct{}, error) {
	switch {
	case j.Durable() >= pos:
		return nil, nil
	case pos > j.End():
		panic(beyondEnd(pos, j.End()))
	}
	if f := j.failure.Load(); f != nil && f.gaveUp {
		return nil, unknown(pos, f)
	}
	if pos > j.want {
		j.want = pos
		j.wakeLocked()
	}
	if pos > j.written {
		if j.next == nil {
			j.next = make(chan struct{})
		}
		return j.next, nil
	}
	if len(j.due) == 0 {
		j.due = append(j.due, make(chan struct{}))
	}
	return j.due[0], nil
}

func beyondEnd(pos, end Pos) string {
	return fmt.Sprintf("journal: waiting for position %d, the end is %d", pos, end)
}

func unknown(pos Pos, f *failure) error {
	return fmt.Errorf("journal: what was appended before position %d may or may not be on disk: %w (%v)", pos, counter.ErrUnknown, f.err)
}
