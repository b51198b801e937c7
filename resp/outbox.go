package resp

import "github.com/tally-counter/tally/engine"

// outbox is what a connection still has to send. Its bytes stand in writer.b in
// the order of the requests:
//
//	sent | shown: may be sent | held: waits for the disk | fresh: not yet put here
//
// At most two units are held: the one that is waited for, and all later replies
// together. So a client that never stops sending still gets its answers.
type outbox struct {
	sent  int // bytes already written to the socket
	shown int // bytes that may be
	held  [2]unit
	n     int // units held
}

// unit is a run of replies that are shown together.
type unit struct {
	end     int // where its bytes end
	pos     engine.Pos
	replies int
	tied    bool
}

// put holds the replies that c has written since the last put.
func (o *outbox) put(c *conn) {
	pos, replies, tied := c.take()
	u := unit{len(c.w.b), pos, replies, tied}
	if o.n == len(o.held) {
		last := &o.held[1]
		last.end, last.pos = u.end, max(last.pos, u.pos)
		last.replies += u.replies
		last.tied = last.tied || u.tied
		return
	}
	if o.n == 0 && u.end == o.shown {
		return // nothing was written
	}
	o.held[o.n] = u
	o.n++
}

// need is the position that the oldest held unit waits for, 0 when none is held.
func (o *outbox) need() engine.Pos {
	if o.n == 0 {
		return 0
	}
	return o.held[0].pos
}

// show releases what the journal now holds.
func (o *outbox) show(durable engine.Pos) {
	for o.n > 0 && o.held[0].pos <= durable {
		o.shown = o.held[0].end
		o.held[0] = o.held[1]
		o.n--
	}
}

// fail replaces the held replies, whose effects may or may not be on disk, by
// one error each, and reports whether the connection must end because one of
// them was about its own state.
func (o *outbox) fail(c *conn, durable engine.Pos, err error) (end bool) {
	o.show(durable)
	if o.n == 0 {
		return false
	}
	replies := 0
	for _, u := range o.held[:o.n] {
		replies += u.replies
		end = end || u.tied
	}
	c.w.b = c.w.b[:o.shown]
	for range replies {
		c.w.error(err)
	}
	o.shown, o.n = len(c.w.b), 0
	return end
}

// ready are the bytes to write to the socket now.
func (o *outbox) ready(c *conn) []byte { return c.w.b[o.sent:o.shown] }

// wrote notes that n of them were taken, and moves what is left to the front
// when that is cheap.
func (o *outbox) wrote(c *conn, n int) {
	o.sent += n
	left := len(c.w.b) - o.sent
	if left > 0 && o.sent < left {
		return
	}
	copy(c.w.b, c.w.b[o.sent:])
	c.w.b = c.w.b[:left]
	o.shown -= o.sent
	for i := range o.n {
		o.held[i].end -= o.sent
	}
	o.sent = 0
}

// pending is how many bytes are not sent yet.
func (o *outbox) pending(c *conn) int { return len(c.w.b) - o.sent }

// last is the position after which nothing is held any more.
func (o *outbox) last() (pos engine.Pos) {
	for _, u := range o.held[:o.n] {
		pos = max(pos, u.pos)
	}
	return pos
}
