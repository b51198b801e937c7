package journal

import (
	"fmt"
	"time"
)

const (
	markDelay   = 100 * time.Millisecond // idle time after which a mark proves the last block
	markBytes   = 1                      // of a mark in the stream; when no more is unproven it is a mark itself
	keepBytes   = 1 << 20                // a larger buffer is not kept for the next block
	idleForever = time.Duration(1<<63 - 1)
	dozeFor     = time.Second // after a commit the committer looks again by itself for so long
)

// step is what the committer does next.
type step struct {
	write bool
	sync  bool
	stop  bool
	sleep time.Duration // when there is nothing to do
	doze  bool          // the sleep is short: Append need not end it
}

// run is the committer: it commits for those who found another commit under
// way, for those who do not wait, and when the disk was full.
func (j *Journal) run() {
	defer close(j.stopped)
	timer := time.NewTimer(idleForever)
	defer timer.Stop()
	for {
		j.turn.Lock()
		if f := j.failure.Load(); f != nil && f.sticky {
			j.turn.Unlock()
			return
		}
		j.mu.Lock()
		s := j.stepLocked(time.Now())
		if s.sleep > 0 {
			j.asleep, j.dozing = true, s.doze
			j.mu.Unlock()
			j.turn.Unlock()
			timer.Reset(s.sleep)
			select {
			case <-j.wake:
			case <-timer.C:
				j.mu.Lock()
				if !j.asleep {
					<-j.wake // a waker came first: take its token
				}
				j.asleep = false
				j.mu.Unlock()
			}
			continue
		}
		block, upto := j.stuck, j.stuckEnd
		if block != nil {
			j.stuck, s.sync = nil, true
		} else if s.write {
			block, upto = j.takeLocked()
		}
		j.mu.Unlock()
		ok := block == nil && !s.sync || j.commit(block, upto, s.sync)
		j.turn.Unlock()
		if !ok {
			return
		}
		if s.stop {
			return
		}
	}
}

// stepLocked decides what to do at time now.
func (j *Journal) stepLocked(now time.Time) (s step) {
	filled := len(j.buf) > blockHeaderBytes
	durable, end := j.Durable(), j.End()
	must := j.want > durable || j.closing || j.stuck != nil

	s.sleep = idleForever
	if filled {
		s.write = must || len(j.buf) >= flushBytes
		s.after(flushDelay-now.Sub(j.since), &s.write)
	}
	if durable < end && !must {
		switch j.o.Sync {
		case Always: // nobody waits yet
			s.sync = s.write
		case Interval:
			s.after(j.o.Interval-now.Sub(j.last), &s.sync)
			s.write = filled && (s.write || s.sync)
		}
	}
	s.sync = s.sync || must && durable < end
	if j.o.Sync == Always && !filled && now.Sub(j.last) < dozeFor {
		s.sleep, s.doze = min(s.sleep, flushDelay), true
	}
	if durable == end && durable-j.proven > markBytes && !j.closing {
		mark := false
		s.after(markDelay-now.Sub(j.last), &mark)
		if mark {
			j.appendLocked(nil)
			s.write, s.sync = true, true
		}
	}
	s.stop = j.closing
	if s.write || s.sync || s.stop || j.stuck != nil {
		s.sleep = 0
	}
	return s
}

// after sets what when d has passed, else sees to it that s sleeps no longer.
func (s *step) after(d time.Duration, what *bool) {
	if d <= 0 {
		*what = true
	} else {
		s.sleep = min(s.sleep, d)
	}
}

// takeLocked takes the filled buffer and puts the spare one in its place.
func (j *Journal) takeLocked() (block []byte, upto Pos) {
	block, upto = j.buf, j.End()
	j.buf, j.spare = newBlock(j.spare), nil
	j.buffered.Store(0)
	j.written, j.since = upto, time.Time{}
	if j.next != nil {
		j.due, j.next = append(j.due, j.next), nil
	}
	if j.room != nil {
		close(j.room)
		j.room = nil
	}
	return block, upto
}

func newBlock(b []byte) []byte {
	if b == nil {
		b = make([]byte, 0, 64<<10)
	}
	return b[:blockHeaderBytes]
}

// release gives a written block's buffer back.
func (j *Journal) release(block []byte) {
	if block == nil || cap(block) > keepBytes {
		return
	}
	j.mu.Lock()
	j.spare = block
	j.mu.Unlock()
}

// commit writes block, which may be nil, syncs when asked and tells who waits.
// On a full disk it tries again until there is room. False: the journal failed
// for good. The caller holds turn.
func (j *Journal) commit(block []byte, upto Pos, sync bool) bool {
	err := j.flush(block, upto, sync)
	if diskFull(err) && j.retry(err, block, upto) {
		err = j.flush(nil, upto, sync)
	}
	if err != nil {
		if j.Failed() == nil || !j.failure.Load().sticky {
			j.fail(err)
		}
		return false
	}
	j.release(block)
	return true
}

// flush is one try of commit. After an error in writing, the same block may be
// flushed again.
func (j *Journal) flush(block []byte, upto Pos, sync bool) error {
	durable := j.Durable()
	if block != nil {
		if err := j.writeBlock(block, upto); err != nil {
			return err
		}
		j.stats.block(len(block))
		j.prepareAhead()
	}
	if !sync {
		return nil
	}
	if err := j.syncFile(); err != nil {
		return err
	}
	if block != nil {
		j.proven = durable
	}
	j.settle()
	return nil
}

// lead commits in the calling goroutine, for itself and everyone else who waits,
// unless a commit is under way: handing over to the committer and being woken by
// it would cost more than the commit.
func (j *Journal) lead() {
	if !j.turn.TryLock() {
		return
	}
	defer j.turn.Unlock()
	j.mu.Lock()
	if len(j.buf) == blockHeaderBytes || j.stuck != nil || j.failure.Load() != nil {
		j.mu.Unlock()
		return
	}
	block, upto := j.takeLocked()
	j.mu.Unlock()
	err := j.flush(block, upto, true)
	switch {
	case err == nil:
		j.release(block)
	case diskFull(err): // the committer goes on trying
		j.mu.Lock()
		j.stuck, j.stuckEnd = block, upto
		j.wakeLocked()
		j.mu.Unlock()
	default:
		j.fail(err)
		j.mu.Lock()
		j.wakeLocked()
		j.mu.Unlock()
	}
}

// settle makes everything written known as durable.
func (j *Journal) settle() {
	j.mu.Lock()
	durable := j.written
	j.durable.Store(uint64(durable))
	due := j.due
	j.due = nil
	j.mu.Unlock()
	j.last = time.Now()
	for _, c := range due {
		close(c)
	}
	j.announce()
}

func (j *Journal) announce() {
	if fn := j.onDurable.Load(); fn != nil {
		(*fn)(j.Durable())
	}
}

// syncFile syncs the segment being written.
func (j *Journal) syncFile() error {
	t := time.Now()
	if err := j.file.Sync(); err != nil {
		return syncError{fmt.Errorf("segment %s: sync failed: %w", j.fileName, err)}
	}
	j.stats.sync(time.Since(t))
	return nil
}

// writeBlock writes block at the end of the current segment, or of a new one
// when it does not fit. Called again after an error it writes the same bytes at
// the same place.
func (j *Journal) writeBlock(block []byte, upto Pos) error {
	start := upto - Pos(len(block)-blockHeaderBytes)
	sealBlock(j.salt, block, start, j.Durable())
	if j.off > segmentHeaderBytes && j.off+int64(len(block)) > j.o.SegmentBytes {
		if err := j.rotate(start); err != nil {
			return err
		}
	}
	if _, err := j.file.WriteAt(block, j.off); err != nil {
		return fmt.Errorf("segment %s: write failed: %w", j.fileName, err)
	}
	j.off += int64(len(block))
	return nil
}
