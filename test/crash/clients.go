package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/tally-counter/tally/test/wire"
)

// object is one object under test. Its fields are the tally of what clients know;
// the mutex of its history guards them.
type object struct {
	key     string
	history history
	acked   int64 // sum of the deltas that were acknowledged
	open    int64 // sum of the deltas whose reply was lost, for good or until sent again
	seen    int64 // the highest value that any client was told
}

// told notes one operation with its outcome; lost is the error of its connection.
func (o *object) told(client int, called int64, in input, out output) {
	o.history.note(client, called, in, out)
	o.history.mu.Lock()
	defer o.history.mu.Unlock()
	switch {
	case out.unknown:
		o.open += in.delta
	case !out.duplicate:
		o.acked += in.delta
	}
	o.seen = max(o.seen, out.value)
}

// resolved turns a lost add of delta into an acknowledged one: a retry with its
// token was answered duplicate.
func (o *object) resolved(delta int64) {
	o.history.mu.Lock()
	defer o.history.mu.Unlock()
	o.acked += delta
}

// retried takes back that an add of delta is open: it is about to be sent again.
func (o *object) retried(delta int64) {
	o.history.mu.Lock()
	defer o.history.mu.Unlock()
	o.open -= delta
}

// A client makes requests one after the other until its connection breaks, and
// returns why it stopped. It keeps what it must remember over a crash.
type client interface {
	run(c *wire.Conn, rng *rand.Rand) error
}

// plainClient sends pipelines of INCRBY. A lost reply is never resolved: such an
// add counts once or not at all.
type plainClient struct {
	number  int
	objects []*object
}

func (p *plainClient) run(c *wire.Conn, rng *rand.Rand) error {
	type sent struct {
		o     *object
		delta int64
	}
	for {
		var pipeline []sent
		for range 1 + rng.IntN(6) {
			s := sent{p.objects[rng.IntN(len(p.objects))], 1 + rng.Int64N(9)}
			c.Append("INCRBY", s.o.key, strconv.FormatInt(s.delta, 10))
			pipeline = append(pipeline, s)
		}
		called := clock()
		err := c.Flush()
		for i, s := range pipeline {
			var v any
			if err == nil {
				v, err = c.Read()
			}
			if err != nil {
				for _, lost := range pipeline[i:] {
					lost.o.told(p.number, called, input{delta: lost.delta}, output{unknown: true})
				}
				return err
			}
			value, ok := v.(int64)
			if !ok {
				return wrong("INCRBY", v)
			}
			s.o.told(p.number, called, input{delta: s.delta}, output{value: value})
		}
	}
}

// tokenClient sends adds of two counters with a token, and sends an add whose
// reply was lost again, with its token, until it is acknowledged. Now and then it
// repeats one that was.
type tokenClient struct {
	number  int
	objects []*object
	sent    int    // tokens used
	last    *order // the add to send again, or nil
}

// order is one add of a tokenClient.
type order struct {
	o     *object
	token string
	delta int64
	known bool // it was acknowledged before
}

func (t *tokenClient) run(c *wire.Conn, rng *rand.Rand) error {
	for {
		if t.last == nil {
			t.sent++
			t.last = &order{
				o: t.objects[rng.IntN(len(t.objects))], delta: 1 + rng.Int64N(9),
				token: fmt.Sprintf("client %d add %d", t.number, t.sent),
			}
		} else if !t.last.known {
			t.last.o.retried(t.last.delta)
		}
		if err := t.add(c); err != nil {
			return err
		}
		if again := !t.last.known && rng.IntN(20) == 0; again {
			t.last.known = true
		} else {
			t.last = nil
		}
	}
}

// add sends t.last once.
func (t *tokenClient) add(c *wire.Conn) error {
	a := t.last
	delta := strconv.FormatInt(a.delta, 10)
	called := clock()
	c.Append("TALLY.ADD", a.o.key, "a", delta, "b", delta, "TOKEN", a.token)
	err := c.Flush()
	var duplicate bool
	var values []int64
	if err == nil {
		duplicate, values, err = readAdd(c)
	}
	asked := input{delta: a.delta}
	if a.known {
		asked = input{} // it must change nothing, so to the model it is a read
	}
	if err != nil {
		a.o.told(t.number, called, asked, output{unknown: true})
		return err
	}
	if len(values) != 2 || values[0] != values[1] {
		return wrong("TALLY.ADD a and b by the same", values)
	}
	if a.known && !duplicate {
		return wrong("TALLY.ADD with the token of an acknowledged add", "applied")
	}
	if duplicate && !a.known {
		a.o.resolved(a.delta)
	}
	a.o.told(t.number, called, asked, output{value: values[0], duplicate: duplicate})
	return nil
}

// readClient reads objects of both kinds.
type readClient struct {
	number        int
	plain, tokens []*object
}

func (r *readClient) run(c *wire.Conn, rng *rand.Rand) error {
	for {
		o := r.plain[rng.IntN(len(r.plain))]
		pair := rng.IntN(2) == 0
		if pair {
			o = r.tokens[rng.IntN(len(r.tokens))]
		}
		called := clock()
		value, err := o.read(c, pair)
		if err != nil {
			return err
		}
		o.told(r.number, called, input{}, output{value: value})
	}
}

// watchClient reads the plain objects as fast as it can, to catch a value between
// its change and the disk. So many reads are not for the histories: only the
// highest value counts.
type watchClient struct {
	objects []*object
}

func (w *watchClient) run(c *wire.Conn, _ *rand.Rand) error {
	for {
		for _, o := range w.objects {
			c.Append("GET", o.key)
		}
		if err := c.Flush(); err != nil {
			return err
		}
		for _, o := range w.objects {
			v, err := c.Read()
			if err != nil {
				return err
			}
			value, err := read(v)
			if err != nil {
				return err
			}
			o.saw(value)
		}
	}
}

// saw notes that a client was told value.
func (o *object) saw(value int64) {
	o.history.mu.Lock()
	defer o.history.mu.Unlock()
	o.seen = max(o.seen, value)
}

// read reads o: counter value, or with pair a and b, which must be equal.
func (o *object) read(c *wire.Conn, pair bool) (int64, error) {
	if !pair {
		v, err := c.Do("GET", o.key)
		if err != nil {
			return 0, err
		}
		return read(v)
	}
	v, err := c.Do("HMGET", o.key, "a", "b")
	if err != nil {
		return 0, err
	}
	items, ok := v.([]any)
	if !ok || len(items) != 2 || items[0] != items[1] {
		return 0, wrong("HMGET of a and b, always added to together,", v)
	}
	return read(items[0])
}
