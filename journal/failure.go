package journal

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/tally-counter/tally/counter"
)

const (
	retryDelay  = time.Second     // between attempts on a full disk
	giveUpDelay = 5 * time.Second // how long waiters are held while a disk is full
)

// failure is why the journal acknowledges nothing at present.
type failure struct {
	err    error
	sticky bool // until the journal is opened again
	gaveUp bool // waiters are not held any longer
}

// syncError is a failed sync. The kernel may have dropped the pages it could
// not write and say nothing at the next sync, so it is never tried again.
type syncError struct{ error }

// retry tries to write block once a second while the disk is full.
func (j *Journal) retry(err error, block []byte, upto Pos) bool {
	since := time.Now()
	for {
		if !diskFull(err) {
			j.fail(err)
			return false
		}
		j.setFull(err, since)
		if j.pause(retryDelay) {
			j.fail(fmt.Errorf("closed while the disk was full: %w", err))
			return false
		}
		if err = j.writeBlock(block, upto); err == nil {
			j.failure.Store(nil)
			j.log.Info("journal: the disk takes writes again", "full", time.Since(since).Round(time.Millisecond))
			return true
		}
	}
}

func diskFull(err error) bool {
	if _, sync := errors.AsType[syncError](err); sync {
		return false
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// pause waits for d; true when the journal is being closed.
func (j *Journal) pause(d time.Duration) (closing bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		j.mu.Lock()
		closing, j.asleep = j.closing, true
		if closing {
			j.asleep = false
		}
		j.mu.Unlock()
		if closing {
			return true
		}
		select {
		case <-j.wake: // by Append, Wait or Close
		case <-timer.C:
			j.mu.Lock()
			if !j.asleep {
				<-j.wake
			}
			j.asleep = false
			j.mu.Unlock()
			return false
		}
	}
}

// setFull makes Admit fail, and ends the wait of those who wait too long.
func (j *Journal) setFull(err error, since time.Time) {
	gaveUp := time.Since(since) >= giveUpDelay
	was := j.failure.Load()
	f := &failure{gaveUp: gaveUp, err: fmt.Errorf("journal: the disk is full and nothing is written: %w (%v); reads go on; "+
		"free space on the disk of %s, writing resumes by itself within a second", counter.ErrUnavailable, err, j.dir)}
	if was == nil {
		j.log.Error("journal: the disk is full, writes are refused until there is room", "dir", j.dir, "err", err)
	}
	j.refuse(f, gaveUp && !was.gaveUp)
}

// fail makes the failure last until the journal is opened again.
func (j *Journal) fail(err error) {
	f := &failure{sticky: true, gaveUp: true, err: fmt.Errorf("journal: writing stopped at position %d: %w (%v); reads go on; nothing is tried again, since after "+
		"a failed sync the kernel may have dropped what it could not write: check the disk of %s, then restart", j.Durable(), counter.ErrUnavailable, err, j.dir)}
	j.log.Error("journal: failed, writes are refused until restart", "dir", j.dir, "durable", j.Durable(), "err", err)
	j.mu.Lock()
	j.buf, j.spare = newBlock(nil), nil
	j.buffered.Store(0)
	j.mu.Unlock()
	j.refuse(f, true)
}

// refuse publishes f and lets go of who waits in Admit, and with all of
// everyone who waits for the disk.
func (j *Journal) refuse(f *failure, all bool) {
	j.mu.Lock()
	j.failure.Store(f)
	var free []chan struct{}
	if j.room != nil {
		free, j.room = append(free, j.room), nil
	}
	if all {
		free = append(free, j.due...)
		if j.next != nil {
			free = append(free, j.next)
		}
		j.due, j.next = nil, nil
	}
	j.mu.Unlock()
	for _, c := range free {
		close(c)
	}
	if all {
		j.announce()
	}
}
