package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/tally-counter/tally/test/wire"
)

// ballast is many objects, more than fit the server's memory budget, so that
// pages are evicted and loaded while it dies. One sessionClient adds to them, and
// nobody reads them meanwhile.
type ballast struct {
	want []int64 // the value of each object, by number
}

// key of the i-th object: ids that look random, so that neighbours in number lie
// on pages far apart.
func (b *ballast) key(i int) string {
	x := uint64(i+1) * 0x9e3779b97f4a7c15 // odd: no two i share an id
	return "ballast:" + strconv.FormatUint(x, 10)
}

// first is the value that the i-th object is loaded with: large and hard to pack,
// so that objects fill memory, and small enough never to overflow.
func (b *ballast) first(i int) int64 {
	return int64(uint64(i+1) * 0xd1342543de82ef95 >> 3)
}

// ballastBatch is how many objects are loaded, or read, at once.
const ballastBatch = 10_000

// load gives every object its first value.
func (b *ballast) load(c *wire.Conn) error {
	for from := 0; from < len(b.want); from += ballastBatch {
		var batch []item
		for i := from; i < min(from+ballastBatch, len(b.want)); i++ {
			b.want[i] = b.first(i)
			batch = append(batch, item{i, b.want[i]})
		}
		if _, err := sendBatch(c, b, nil, batch); err != nil {
			return err
		}
	}
	return nil
}

// check reads n objects at once, from the i-th on, and compares them.
func (b *ballast) check(c *wire.Conn, i, n int) error {
	n = min(n, len(b.want)-i)
	c.Begin(1 + n)
	c.Arg("MGET")
	for j := i; j < i+n; j++ {
		c.Arg(b.key(j))
	}
	if err := c.Flush(); err != nil {
		return err
	}
	v, err := c.Read()
	if err != nil {
		return err
	}
	values, ok := v.([]any)
	if !ok || len(values) != n {
		return wrong("MGET", v)
	}
	for j, v := range values {
		if got, err := read(v); err != nil || got != b.want[i+j] {
			return wrong("MGET", fmt.Sprintf("%v for %s, which stands at %d", v, b.key(i+j), b.want[i+j]))
		}
	}
	return nil
}

// checkAll reads every object.
func (b *ballast) checkAll(c *wire.Conn) error {
	for i := 0; i < len(b.want); i += ballastBatch {
		if err := b.check(c, i, ballastBatch); err != nil {
			return err
		}
	}
	return nil
}

// item is one add of a batch.
type item struct {
	object int
	delta  int64
}

// sessionClient sends batches of adds in a session. A batch whose reply was lost
// is resolved after the restart: the session says which was its last.
type sessionClient struct {
	ballast     *ballast
	producer    string
	epoch, last int64  // of the session
	batch       []item // sent with number last+1, its reply outstanding; or nil
	batches     int    // acknowledged so far
}

// batchItems is the size of a batch.
const batchItems = 40

// checkpointEvery is after how many batches, on average, a checkpoint is asked for.
const checkpointEvery = 30

func (s *sessionClient) run(c *wire.Conn, rng *rand.Rand) error {
	if err := s.open(c); err != nil {
		return err
	}
	for {
		if s.batch == nil {
			for range batchItems {
				s.batch = append(s.batch, item{rng.IntN(len(s.ballast.want)), 1 + rng.Int64N(9)})
			}
		}
		applied, err := sendBatch(c, s.ballast, s, s.batch)
		if err != nil {
			return err
		}
		if applied != len(s.batch) {
			return wrong("TALLY.MADD of a new batch", fmt.Sprintf("%d of %d applied", applied, len(s.batch)))
		}
		s.acknowledged()
		if rng.IntN(checkpointEvery) == 0 {
			if _, err := c.Do("TALLY.CHECKPOINT"); err != nil {
				return err
			}
		}
	}
}

// open opens the session anew and resolves the batch that was in flight.
func (s *sessionClient) open(c *wire.Conn) error {
	epoch, last, err := openSession(c, s.producer)
	if err != nil {
		return err
	}
	if epoch <= s.epoch {
		return wrong("TALLY.SESSION OPEN", fmt.Sprintf("epoch %d after %d", epoch, s.epoch))
	}
	s.epoch = epoch
	switch {
	case last == s.last:
		// What was in flight is not applied; it is sent again.
	case last == s.last+1 && s.batch != nil:
		s.acknowledged()
	default:
		return wrong("TALLY.SESSION OPEN", fmt.Sprintf("last sequence number %d, the last acknowledged is %d", last, s.last))
	}
	return nil
}

func (s *sessionClient) acknowledged() {
	for _, it := range s.batch {
		s.ballast.want[it.object] += it.delta
	}
	s.batch = nil
	s.last++
	s.batches++
}

// sendBatch sends adds to the ballast as one command, in the session s unless it
// is nil, and returns how many were applied.
func sendBatch(c *wire.Conn, b *ballast, s *sessionClient, batch []item) (applied int, err error) {
	head := []string{"TALLY.MADD"}
	if s != nil {
		head = append(head, "SESSION", s.producer, strconv.FormatInt(s.epoch, 10), strconv.FormatInt(s.last+1, 10))
	}
	head = append(head, "COUNTS", "COUNTER", "value", strconv.Itoa(len(batch)))
	c.Begin(len(head) + 2*len(batch))
	for _, arg := range head {
		c.Arg(arg)
	}
	for _, it := range batch {
		c.Arg(b.key(it.object))
		c.ArgInt(it.delta)
	}
	if err := c.Flush(); err != nil {
		return 0, err
	}
	return readCounts(c)
}
