package resp

import (
	"net"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sock is a connection of an event loop.
type sock struct {
	*conn
	fd       int    // -1 once closed
	in       []byte // bytes of a request that is not complete
	out      outbox
	interest uint32 // what epoll watches
	due      bool   // it stands in loop.due
	fresh    bool   // it has run something since the last commit
	away     bool   // a goroutine runs its slow command
	killed   bool   // it is to be closed when that is done
	stalled  bool   // requests stand in k.in until replies have been read
	progress time.Time
}

// acceptMax is how many connections one event takes.
const acceptMax = 64

func (l *loop) accept() {
	for range acceptMax {
		fd, addr, err := unix.Accept4(l.parent.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			if err == unix.EMFILE || err == unix.ENFILE {
				l.listen(false)
				l.server.log.Error("no more connections can be taken: raise the limit of open files", "error", err)
			}
			return
		}
		to := l.parent.all[l.parent.next%len(l.parent.all)]
		l.parent.next++
		remote := address(addr)
		if to == l {
			l.adopt(fd, remote)
		} else {
			to.post(func() { to.adopt(fd, remote) })
		}
	}
}

// listen starts and stops taking connections. Without room for another the
// waiting ones would be one event after the other.
func (l *loop) listen(on bool) error {
	l.listening = on
	if on {
		return l.control(unix.EPOLL_CTL_ADD, l.parent.listener, unix.EPOLLIN)
	}
	return l.control(unix.EPOLL_CTL_DEL, l.parent.listener, 0)
}

func address(a unix.Sockaddr) string {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return net.JoinHostPort(netip.AddrFrom4(a.Addr).String(), strconv.Itoa(a.Port))
	case *unix.SockaddrInet6:
		return net.JoinHostPort(netip.AddrFrom16(a.Addr).Unmap().String(), strconv.Itoa(a.Port))
	}
	return "?"
}

// adopt makes a socket one of the loop's.
func (l *loop) adopt(fd int, remote string) {
	if l.stopping {
		unix.Close(fd)
		return
	}
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	local := "?"
	if a, err := unix.Getsockname(fd); err == nil {
		local = address(a)
	}
	k := &sock{conn: l.server.newConn(&l.work, remote, local), fd: fd, progress: l.now}
	k.gather = l.gather
	k.info.close = func() { l.post(func() { l.kill(k) }) }
	if !l.server.register(k.conn) {
		unix.Write(fd, []byte(tooManyConnections))
		unix.Close(fd)
		return
	}
	if err := l.control(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN); err != nil {
		l.server.logClose(k.conn, err.Error())
		l.server.forget(k.conn)
		unix.Close(fd)
		return
	}
	k.interest = unix.EPOLLIN
	l.socks[int32(fd)] = k
}

// drop closes a connection.
func (l *loop) drop(k *sock) {
	delete(l.socks, int32(k.fd))
	unix.Close(k.fd)
	k.fd = -1
	l.server.forget(k.conn)
	l.reuse(k.w.b)
	k.w.b, k.in = nil, nil
}

func (l *loop) kill(k *sock) {
	switch {
	case k.fd < 0:
	case k.away:
		k.killed = true
	default:
		l.drop(k)
	}
}

func (l *loop) event(k *sock, events uint32) {
	if events&unix.EPOLLOUT != 0 {
		l.flush(k)
	}
	if k.fd >= 0 && k.interest&unix.EPOLLIN != 0 && events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		l.read(k)
	} else if k.fd >= 0 && events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		l.drop(k) // both directions are gone: nobody can be answered
	}
}

// read takes what has arrived and runs it. While nothing is left over the bytes
// never leave the loop's buffer, so that idle connections need none.
func (l *loop) read(k *sock) {
	to := l.buf
	if len(k.in) > 0 {
		k.in = grow(k.in)
		to = k.in[len(k.in):cap(k.in)]
	}
	n, err := recv(k.fd, to)
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return
	case err != nil:
		l.drop(k)
		return
	case n == 0: // the client has sent all it will; it may still read
		k.closing = true
		l.flush(k)
		return
	}
	k.progress = l.now
	k.info.lastActive.Store(l.now.UnixNano())
	l.server.stats.bytesIn.Add(int64(n))
	if len(k.in) > 0 {
		k.in = k.in[:len(k.in)+n]
		l.serve(k, k.in)
	} else {
		l.serve(k, to[:n])
	}
}

// grow makes room to read into behind b.
func grow(b []byte) []byte {
	if cap(b)-len(b) >= 4<<10 {
		return b
	}
	g := make([]byte, len(b), max(16<<10, 2*cap(b)))
	copy(g, b)
	return g
}

// serve runs the requests in data and keeps what is left of it.
func (l *loop) serve(k *sock, data []byte) {
	if k.w.b == nil {
		k.w.b = l.buffer()
	}
	n := k.process(data, l.server.opts.OutputBytesMax)
	rest := data[n:]
	switch {
	case len(rest) == 0 && cap(k.in) > smallBuffer:
		k.in = nil
	case len(rest) == 0:
		k.in = k.in[:0]
	default:
		k.in = append(k.in[:0], rest...)
	}
	k.stalled = len(rest) > 0 && len(k.w.b) >= l.server.opts.OutputBytesMax
	if l.server.buffer(k.conn, cap(k.in)+k.out.pending(k.conn)) {
		l.server.logClose(k.conn, "all connections together hold too many bytes")
		l.drop(k)
		return
	}
	l.mark(k)
	if k.slow != nil {
		l.sendAway(k)
	}
}

// mark has the next commit look after k.
func (l *loop) mark(k *sock) {
	k.fresh = true
	if !k.due {
		k.due = true
		l.due = append(l.due, k)
	}
}

// sendAway has a slow command run by a goroutine. Until it is back the loop does
// not touch k, and epoll does not watch it.
func (l *loop) sendAway(k *sock) {
	k.out.put(k.conn)
	k.fresh, k.away = false, true
	l.control(unix.EPOLL_CTL_DEL, k.fd, 0)
	k.interest = 0
	l.parent.tasks.Go(func() {
		l.server.slots <- struct{}{}
		k.runSlow()
		<-l.server.slots
		l.post(func() { l.back(k) })
	})
}

// back takes k up again after its slow command.
func (l *loop) back(k *sock) {
	k.away = false
	if l.stopping {
		k.closing = true
	}
	if k.killed {
		l.drop(k)
		return
	}
	if err := l.control(unix.EPOLL_CTL_ADD, k.fd, 0); err != nil {
		l.server.logClose(k.conn, err.Error())
		l.drop(k)
		return
	}
	k.progress = l.now
	l.serve(k, k.in)
	if k.fd >= 0 && !k.away {
		l.watch(k)
	}
}

// flush writes what may be shown, and ends a connection that has no more to say.
func (l *loop) flush(k *sock) {
	for k.out.sent < k.out.shown {
		n, err := send(k.fd, k.out.ready(k.conn))
		if err == unix.EAGAIN {
			break
		}
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			l.drop(k)
			return
		}
		k.progress = l.now
		l.server.stats.bytesOut.Add(int64(n))
		k.out.wrote(k.conn, n)
	}
	if k.out.pending(k.conn) == 0 {
		if k.closing && !k.fresh {
			l.drop(k)
			return
		}
		if !k.fresh {
			l.reuse(k.w.b)
			k.w.b = nil
		}
		if k.counted != 0 {
			l.server.buffer(k.conn, cap(k.in))
		}
	}
	l.watch(k)
	if k.stalled && k.out.pending(k.conn) < l.server.opts.OutputBytesMax/2 {
		k.stalled = false
		l.post(func() { l.resume(k) })
	}
}

// watch tells epoll what k waits for: requests unless too many replies are
// unread, and room for replies when there was none.
func (l *loop) watch(k *sock) {
	var want uint32
	full := k.out.pending(k.conn) >= l.server.opts.OutputBytesMax
	if !k.closing && !full {
		want |= unix.EPOLLIN
	}
	if k.out.sent < k.out.shown {
		want |= unix.EPOLLOUT
	}
	if want == k.interest {
		return
	}
	k.interest = want
	if err := l.control(unix.EPOLL_CTL_MOD, k.fd, want); err != nil {
		l.server.logClose(k.conn, err.Error())
		l.drop(k)
		return
	}
}

func (l *loop) resume(k *sock) {
	if k.fd >= 0 && !k.away {
		l.serve(k, k.in)
	}
}

// buffer is an empty output buffer.
func (l *loop) buffer() []byte {
	if n := len(l.spare); n > 0 {
		b := l.spare[n-1]
		l.spare = l.spare[:n-1]
		return b
	}
	return make([]byte, 0, 1<<10)
}

func (l *loop) reuse(b []byte) {
	if b != nil && cap(b) <= smallBuffer && len(l.spare) < sparesMax {
		l.spare = append(l.spare, b[:0])
	}
}

// The calls of the hot path. None of them blocks, so the scheduler need not be
// told: that saves about 0.1 µs a call.

func recv(fd int, b []byte) (int, error) {
	n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

func send(fd int, b []byte) (int, error) {
	n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

func epollWait(ep int, events []unix.EpollEvent, ms int) (n int, err error) {
	var r uintptr
	var e unix.Errno
	if ms == 0 {
		r, _, e = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	} else {
		r, _, e = unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(ms), 0, 0)
	}
	if e != 0 {
		return 0, e
	}
	return int(r), nil
}

// yield lets a client on the same processor go on, whose next request may then
// share this round.
func yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
