package resp

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// goroutines is the portable transport: one goroutine a connection.
type goroutines struct {
	server *Server
	ln     net.Listener

	mu    sync.Mutex
	open  map[net.Conn]bool // guarded by mu
	ended bool              // guarded by mu
	wg    sync.WaitGroup
}

func (s *Server) newGoroutines(ln net.Listener) transport {
	return &goroutines{server: s, ln: ln, open: map[net.Conn]bool{}}
}

func (t *goroutines) abandon() { t.ln.Close() }

func (t *goroutines) serve() error {
	defer t.wg.Wait()
	for {
		nc, err := t.ln.Accept()
		if err != nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.ended || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		t.mu.Lock()
		if t.ended {
			t.mu.Unlock()
			nc.Close()
			continue
		}
		t.open[nc] = true
		t.wg.Go(func() { t.run(nc) })
		t.mu.Unlock()
	}
}

// stop lets every connection finish what it has read: reads fail from now on,
// writes when ctx ends.
func (t *goroutines) stop(ctx context.Context) {
	t.ln.Close()
	t.mu.Lock()
	t.ended = true
	for nc := range t.open {
		nc.SetReadDeadline(time.Unix(1, 0))
	}
	t.mu.Unlock()
	context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for nc := range t.open {
			nc.Close()
		}
	})
}

// run serves one connection to its end.
func (t *goroutines) run(nc net.Conn) {
	s := t.server
	c := s.newConn(new(scratch), nc.RemoteAddr().String(), nc.LocalAddr().String())
	c.info.close = func() { nc.Close() }
	defer func() {
		nc.Close()
		t.mu.Lock()
		delete(t.open, nc)
		t.mu.Unlock()
	}()
	if !s.register(c) {
		nc.SetWriteDeadline(time.Now().Add(time.Second))
		nc.Write([]byte(tooManyConnections))
		return
	}
	defer s.forget(c)
	var in []byte
	var out outbox
	buf := make([]byte, 16<<10)
	for !c.closing {
		if !t.await(nc) {
			return
		}
		n, err := nc.Read(buf)
		if n > 0 {
			s.stats.bytesIn.Add(int64(n))
			c.info.lastActive.Store(time.Now().UnixNano())
			in = append(in, buf[:n]...)
			if in, err = t.work(nc, c, &out, in); err != nil {
				return
			}
		}
		if err != nil {
			if idle, ok := errors.AsType[net.Error](err); ok && idle.Timeout() && s.opts.IdleTimeout > 0 {
				s.logClose(c, "idle")
			}
			return
		}
	}
}

// await sets the time until which the next request is waited for; false once the
// server stops.
func (t *goroutines) await(nc net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if idle := t.server.opts.IdleTimeout; idle > 0 && !t.ended {
		nc.SetReadDeadline(time.Now().Add(idle))
	}
	return !t.ended
}

// work answers the complete requests in in and returns the rest.
func (t *goroutines) work(nc net.Conn, c *conn, out *outbox, in []byte) ([]byte, error) {
	s := t.server
	done := 0
	for {
		n := c.process(in[done:], s.opts.OutputBytesMax)
		done += n
		more := c.slow != nil
		if more {
			c.runSlow()
		}
		out.put(c)
		if err := s.engine.Wait(out.need()); err != nil {
			c.closing = out.fail(c, s.engine.Durable(), err) || c.closing
		} else {
			out.show(out.need())
		}
		if err := t.write(nc, c, out); err != nil {
			return nil, err
		}
		if !more && n == 0 {
			break
		}
	}
	in = append(in[:0], in[done:]...)
	if s.buffer(c, cap(in)) {
		s.logClose(c, "all connections together hold too many bytes")
		return nil, errBufferedMax
	}
	if len(in) == 0 && cap(in) > smallBuffer {
		in = nil
	}
	return in, nil
}

var errBufferedMax = errors.New("too many bytes are buffered")

func (t *goroutines) write(nc net.Conn, c *conn, out *outbox) error {
	b := out.ready(c)
	if len(b) == 0 {
		return nil
	}
	nc.SetWriteDeadline(time.Now().Add(t.server.opts.SlowTimeout))
	n, err := nc.Write(b)
	t.server.stats.bytesOut.Add(int64(n))
	out.wrote(c, n)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		t.server.logClose(c, "it does not read its replies: "+err.Error())
	}
	if cap(c.w.b) > smallBuffer {
		c.w.b = nil
	}
	return err
}
