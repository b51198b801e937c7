package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tally-counter/tally/counter"
)

const (
	tendEvery          = 250 * time.Millisecond
	checkpointAgeMax   = time.Minute     // dirty pages wait at most so long
	checkpointTailMin  = 24 << 20        // bytes of journal that are not worth a checkpoint
	checkpointTailMax  = 1 << 30         // bytes of journal that always are
	checkpointRetryMin = 5 * time.Second // after a failure
	evictStepBytes     = 256 << 10       // what one call evicts at most, under its partition's lock
	roomWaitMax        = 30 * time.Second
)

// keeper is the engine's one background goroutine: it checkpoints when the
// journal or the changed pages have grown, and removes what has expired.
type keeper struct {
	checkpointMu sync.Mutex // one checkpoint at a time

	wake    chan struct{}
	quit    chan struct{}
	done    sync.WaitGroup
	roomMu  sync.Mutex
	room    chan struct{} // closed and replaced after each round
	last    time.Time     // of the last checkpoint, or try
	retryAt time.Time
	sweep   sweep
}

func (k *keeper) start(e *Engine) {
	k.wake = make(chan struct{}, 1)
	k.quit = make(chan struct{})
	k.room = make(chan struct{})
	k.last = time.Now()
	k.done.Go(func() {
		if err := e.catchUpAll(k.quit); err != nil {
			e.log.Error("recovery could not apply all of the journal; what it could not is tried again when asked for", "error", err)
		}
		tick := time.NewTicker(tendEvery)
		defer tick.Stop()
		for {
			select {
			case <-k.quit:
				return
			case <-k.wake:
			case <-tick.C:
			}
			k.tend(e)
		}
	})
}

func (k *keeper) stop() {
	if k.quit != nil {
		close(k.quit)
		k.done.Wait()
	}
}

// hurry asks for a round now.
func (k *keeper) hurry() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *keeper) tend(e *Engine) {
	if now := time.Now(); now.After(k.retryAt) && k.due(e, now) {
		if err := e.Checkpoint(); err != nil {
			e.log.Error("checkpoint failed; the journal is kept, it is tried again", "error", err)
			k.retryAt = time.Now().Add(checkpointRetryMin)
		}
		k.last = time.Now()
	}
	for i := range e.parts {
		part := &e.parts[i]
		part.mu.Lock()
		e.settle(part)
		part.mu.Unlock()
	}
	k.sweep.step(e)
	k.roomMu.Lock()
	close(k.room)
	k.room = make(chan struct{})
	k.roomMu.Unlock()
}

// due tells whether a checkpoint is worth its work: the journal's tail has
// outgrown what a restart should replay, or changed pages fill the memory, or a
// minute has passed.
func (k *keeper) due(e *Engine, now time.Time) bool {
	tail := int64(e.journal.End()) - int64(e.counts.checkpointPos.Load())
	switch {
	case tail == 0:
		return false
	case tail >= min(checkpointTailMax, max(checkpointTailMin, e.memory.Load()/4)):
		return true
	case e.memory.Load() > e.limit():
		return e.dirtyBytes() > e.limit()/8
	}
	return now.Sub(k.last) >= checkpointAgeMax
}

func (e *Engine) dirtyBytes() (n int64) {
	for i := range e.parts {
		part := &e.parts[i]
		part.mu.Lock()
		for _, t := range part.tables {
			n += t.DirtyBytes()
		}
		part.mu.Unlock()
	}
	return n
}

// limit is the budget for pages and directory, in bytes: what tokens leave, but
// never less than a quarter of the whole.
func (e *Engine) limit() int64 {
	return max(e.opts.Memory-e.tokenCount.Load()*tokenBytes, e.opts.Memory/4)
}

// relieve drops cold clean pages of a partition, about want bytes. The caller
// holds its lock. When there are none to drop, a checkpoint has to clean some.
func (e *Engine) relieve(part *partition, want int64) {
	var freed int64
	for range part.tables {
		part.clock++
		freed += part.tables[part.clock%len(part.tables)].Evict(want - freed)
		if freed >= want {
			break
		}
	}
	if freed > 0 {
		e.counts.evictedBytes.Add(freed)
		now := part.pool.Bytes()
		e.memory.Add(now - part.memory)
		part.memory = now
	}
	if freed < want {
		e.keeper.hurry()
	}
}

// Admit is called before a group of writes: it waits, for a bounded time, while
// the journal's buffer or the memory is full of what is not on disk yet.
//
// Errors: ErrUnavailable when the disk refuses writes, with what to do; ErrBusy
// when no room came free. Nothing was changed then.
func (e *Engine) Admit() error {
	if err := e.writable(); err != nil {
		return err
	}
	if e.memory.Load() > e.limit()/4*5 {
		if err := e.waitForRoom(); err != nil {
			return err
		}
	}
	return e.journal.Admit(context.Background())
}

func (e *Engine) waitForRoom() error {
	deadline := time.NewTimer(roomWaitMax)
	defer deadline.Stop()
	for {
		e.keeper.roomMu.Lock()
		room := e.keeper.room
		e.keeper.roomMu.Unlock()
		if e.memory.Load() <= e.limit()/4*5 {
			return nil
		}
		e.keeper.hurry()
		select {
		case <-room:
		case <-e.keeper.quit:
			return fmt.Errorf("the engine is shut: %w", counter.ErrClosed)
		case <-deadline.C:
			return fmt.Errorf("memory is full of changes that the disk has not taken for %s; give more --memory or a faster disk: %w", roomWaitMax, counter.ErrBusy)
		}
	}
}
