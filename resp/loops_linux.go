package resp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tally-counter/tally/engine"
)

// loops is the transport of Linux: some event loops that share the connections.
//
// Measured on 2 processors with 50 connections (CPU per INCR, journal synced
// before every reply): a loop that commits by itself 7.8 µs at pipeline 1 and
// 0.7 µs at pipeline 16; a loop beside a committing goroutine 9.5 and 0.9; gnet
// 11.9 and 1.4; a goroutine per connection 12.3 to 16.3 and 1.5 to 1.9.
type loops struct {
	server   *Server
	listener int // the listening socket
	all      []*loop
	next     int // the loop that gets the next connection; used by the first loop only
	tasks    sync.WaitGroup
}

// loop is one event loop. Everything in it belongs to its goroutine but inbox.
//
// A round: wait for events; read what has arrived and run it (again, a few
// times, if more arrives meanwhile); wait for the journal once for everything
// that was run; write all replies.
type loop struct {
	server *Server
	parent *loops
	first  bool // also accepts connections
	ep     int
	wakeFd int
	socks  map[int32]*sock
	events [256]unix.EpollEvent
	buf    []byte
	spare  [][]byte // output buffers for reuse
	work   scratch
	gather *gather
	due    []*sock // have run something in this round, or have replies held
	now    time.Time
	ticked time.Time
	disk   disk

	listening bool
	stopping  bool
	stopped   context.Context

	mu    sync.Mutex
	inbox []func() // guarded by mu: what other goroutines ask the loop to do
	gone  bool     // guarded by mu: nobody reads the inbox any more
}

const (
	readBytes   = 64 << 10
	drainRounds = 4 // more events are looked for so often before the journal is waited for
	sparesMax   = 256
)

func (s *Server) newLoops(ln *net.TCPListener) (_ transport, err error) {
	defer ln.Close()
	file, err := ln.File() // a copy of the descriptor
	if err != nil {
		return nil, err
	}
	defer file.Close()
	t := &loops{server: s}
	if t.listener, err = unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.abandon()
		}
	}()
	if err := unix.SetNonblock(t.listener, true); err != nil {
		return nil, err
	}
	for i := range s.opts.Loops {
		l := &loop{server: s, parent: t, first: i == 0, ep: -1, wakeFd: -1, socks: map[int32]*sock{}, buf: make([]byte, readBytes), gather: newGather(s.engine)}
		t.all = append(t.all, l)
		if err := l.open(); err != nil {
			return nil, fmt.Errorf("event loop: %w", err)
		}
	}
	return t, nil
}

func (l *loop) open() (err error) {
	if l.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if l.wakeFd, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return err
	}
	// Edge-triggered: every write to it is an event, and it need not be read.
	if err := l.control(unix.EPOLL_CTL_ADD, l.wakeFd, unix.EPOLLIN|unix.EPOLLET); err != nil {
		return err
	}
	if l.first {
		return l.listen(true)
	}
	return nil
}

func (l *loop) control(op, fd int, events uint32) error {
	return unix.EpollCtl(l.ep, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

func (t *loops) abandon() {
	unix.Close(t.listener)
	for _, l := range t.all {
		l.release()
	}
}

func (l *loop) release() {
	for _, fd := range []int{l.ep, l.wakeFd} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

func (t *loops) serve() error {
	errs := make([]error, len(t.all))
	var wg sync.WaitGroup
	for i, l := range t.all {
		wg.Go(func() { errs[i] = l.run() })
	}
	wg.Wait()
	t.tasks.Wait()
	t.abandon()
	return errors.Join(errs...)
}

// stop asks every loop to send what it has and to end.
func (t *loops) stop(ctx context.Context) {
	for _, l := range t.all {
		l.post(func() { l.shut(ctx) })
		context.AfterFunc(ctx, func() { l.post(func() {}) })
	}
}

// post has the loop call f soon. Any goroutine may call it.
func (l *loop) post(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return
	}
	if l.inbox = append(l.inbox, f); len(l.inbox) == 1 {
		one := [8]byte{1}
		unix.Write(l.wakeFd, one[:]) // can fail only when the loop is awake anyway
	}
}

func (l *loop) run() error {
	defer l.end()
	for {
		n, err := l.wait(l.timeout())
		if err != nil {
			return fmt.Errorf("event loop: %w", err)
		}
		l.now = time.Now()
		l.handle(n)
		for round := 0; round < drainRounds && n > 0 && len(l.due) > 0 && len(l.due) < len(l.socks); round++ {
			yield()
			if n, err = l.wait(0); err != nil {
				return fmt.Errorf("event loop: %w", err)
			}
			l.handle(n)
		}
		l.commit()
		if l.now.Sub(l.ticked) >= tickInterval {
			l.tick()
		}
		if l.stopping && (len(l.socks) == 0 || l.stopped.Err() != nil) {
			return nil
		}
	}
}

// end closes what is left and refuses what is still posted.
func (l *loop) end() {
	for _, k := range l.socks {
		if !k.away {
			l.drop(k)
		}
	}
	l.mu.Lock()
	l.gone = true
	rest := l.inbox
	l.inbox = nil
	l.mu.Unlock()
	for _, f := range rest {
		f()
	}
	for _, k := range l.socks { // a slow command of theirs outlives the loop
		unix.Close(k.fd)
		l.server.forget(k.conn)
	}
}

// tickInterval is how often timeouts are looked at.
const tickInterval = time.Second

// timeout is how long the loop may sleep, in milliseconds, -1 for ever.
func (l *loop) timeout() int {
	if len(l.socks) == 0 && (l.listening || !l.first || l.stopping) {
		return -1
	}
	return int(tickInterval / time.Millisecond)
}

func (l *loop) wait(ms int) (int, error) {
	n, err := epollWait(l.ep, l.events[:], ms)
	if err == unix.EINTR {
		return 0, nil
	}
	return n, err
}

// handle runs what has happened.
func (l *loop) handle(n int) {
	for i := range n {
		e := &l.events[i]
		switch fd := e.Fd; {
		case int(fd) == l.wakeFd:
			l.readInbox()
		case l.first && !l.stopping && int(fd) == l.parent.listener:
			l.accept()
		default:
			if k := l.socks[fd]; k != nil {
				l.event(k, e.Events)
			}
		}
	}
}

func (l *loop) readInbox() {
	l.mu.Lock()
	posted := l.inbox
	l.inbox = nil
	l.mu.Unlock()
	for _, f := range posted {
		f()
	}
}

// commit makes sure of what was run in this round and sends the replies.
//
// What needs no waiting goes out first. The rest waits for the journal: in this
// goroutine while the disk is fast, which costs no switch to another; beside the
// loop while it is slow, so that reads of quiet objects go on.
func (l *loop) commit() {
	if len(l.due) == 0 {
		return
	}
	l.hold()
	need := l.show(l.server.engine.Durable())
	if need == 0 || l.disk.waiting {
		return
	}
	if l.disk.average > l.server.slowDisk {
		l.disk.waiting = true
		l.parent.tasks.Go(func() {
			took, err := l.waitDurable(need)
			l.post(func() {
				l.disk.waiting = false
				l.settle(took, err)
			})
		})
		return
	}
	l.settle(l.waitDurable(need))
}

// hold puts what was run since the last time with the replies that wait.
func (l *loop) hold() {
	l.gather.run()
	for _, k := range l.due {
		if k.fresh {
			k.fresh = false
			k.out.put(k.conn)
		}
	}
}

func (l *loop) waitDurable(pos engine.Pos) (time.Duration, error) {
	start := time.Now()
	err := l.server.engine.Wait(pos)
	return time.Since(start), err
}

func (l *loop) settle(took time.Duration, err error) {
	l.disk.took(took)
	l.hold()
	durable := l.server.engine.Durable()
	l.hold() // also what was run since in this round: show forgets whoever holds nothing
	if err != nil {
		for _, k := range l.due {
			if !k.away && k.out.fail(k.conn, durable, err) {
				k.closing = true
			}
		}
	}
	l.show(durable)
}

// show sends, of what is on hold, what the journal now holds, and returns the position that the rest
// waits for, 0 when nothing does.
func (l *loop) show(durable engine.Pos) (need engine.Pos) {
	due := l.due[:0]
	for _, k := range l.due {
		if k.fd < 0 || k.away {
			k.due = false // gone, or put here again when it is back
			continue
		}
		k.out.show(durable)
		l.flush(k)
		if k.fd >= 0 && (k.out.n > 0 || k.fresh) {
			need = max(need, k.out.last())
			due = append(due, k) // a fresh one has run something since the last hold
		} else {
			k.due = false
		}
	}
	clear(l.due[len(due):])
	l.due = due
	return need
}

// disk remembers how long the journal takes.
type disk struct {
	average time.Duration
	waiting bool // a goroutine waits on behalf of the loop
}

// took notes the time of a commit. One that hangs counts no more than 100 ms, so
// that the average comes down again soon.
func (d *disk) took(t time.Duration) { d.average += (min(t, 100*time.Millisecond) - d.average) / 16 }

// tick ends connections that have been silent, or deaf, for too long.
func (l *loop) tick() {
	l.ticked = l.now
	if l.first && !l.listening && !l.stopping {
		l.listen(true)
	}
	for _, k := range l.socks {
		switch {
		case k.away:
		case k.out.sent < k.out.shown && l.now.Sub(k.progress) > l.server.opts.SlowTimeout:
			l.server.logClose(k.conn, "it does not read its replies")
			l.drop(k)
		case l.server.opts.IdleTimeout > 0 && k.out.pending(k.conn) == 0 && l.now.Sub(k.progress) > l.server.opts.IdleTimeout:
			l.server.logClose(k.conn, "idle")
			l.drop(k)
		}
	}
}

// shut begins the end: no connection and no request is taken any more.
func (l *loop) shut(ctx context.Context) {
	l.stopping, l.stopped = true, ctx
	if l.listening {
		l.listen(false)
	}
	for _, k := range l.socks {
		if !k.away { // it is seen to when it is back
			k.closing = true
			l.flush(k)
		}
	}
}
