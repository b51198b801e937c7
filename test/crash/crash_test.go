package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tally-counter/tally/test/proc"
	"github.com/tally-counter/tally/test/wire"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Clean()
	os.Exit(code)
}

// TestCrash: everything in memory.
func TestCrash(t *testing.T) { crash(t, 60, 10_000) }

// TestCrashSmallMemory: more objects than the memory budget holds, so that
// eviction and page loads take part.
func TestCrashSmallMemory(t *testing.T) {
	s := crash(t, 60, 1_500_000, "--memory", "16MiB")
	if s.evicted == 0 {
		t.Error("no page was ever evicted: the ballast is too small for what this test is about")
	}
}

// Times of a round.
const (
	loadMin   = 50 * time.Millisecond  // under load before the server is killed
	loadMax   = 200 * time.Millisecond // at most
	bootMax   = 20 * time.Millisecond  // at most, until a server that starts is killed
	answerMax = 30 * time.Second       // for all replies of a connection in a round
	fillMax   = 5 * time.Minute        // for loading, and at the end reading, the ballast
)

// crash runs rounds of load and kill. TALLY_SOAK runs them for that long instead;
// TALLY_SEED repeats the choices of an earlier run.
func crash(t *testing.T, rounds int, ballastObjects int, flags ...string) *suite {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TALLY_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("TALLY_SEED: %v", err)
		}
	}
	t.Logf("seed %d (TALLY_SEED=%d repeats it)", seed, seed)
	more := func(round int) bool { return round < rounds }
	if s := os.Getenv("TALLY_SOAK"); s != "" {
		span, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("TALLY_SOAK: %v", err)
		}
		end := time.Now().Add(span)
		more = func(int) bool { return time.Now().Before(end) }
	}
	addr, err := proc.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	s := newSuite(t.TempDir(), addr, flags, seed, ballastObjects)
	defer s.kill()
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	round := 0
	for ; more(round); round++ {
		if err := s.round(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	// A server that answers nothing would pass every check.
	if s.operations < 20*round || s.session.batches < round {
		t.Errorf("%d operations and %d batches in %d rounds: too few to have tested anything", s.operations, s.session.batches, round)
	}
	slices.Sort(s.starts)
	t.Logf("%d rounds, %d operations, %d open in lost replies, %d batches, %d bytes of pages evicted by the last server; "+
		"ballast took %v to load, a restart %v in the middle, %v at most", round, s.operations, s.lost(), s.session.batches, s.evicted,
		s.filled.Round(time.Millisecond), s.starts[len(s.starts)/2].Round(time.Millisecond), s.starts[len(s.starts)-1].Round(time.Millisecond))
	return s
}

// suite is one run on one data directory.
type suite struct {
	dir, addr string
	flags     []string
	rng       *rand.Rand
	server    *proc.Server

	plain, tokens []*object
	ballast       *ballast
	session       *sessionClient
	tokenClients  []*tokenClient
	clients       []client
	operations    int
	filled        time.Duration   // how long loading the ballast took
	starts        []time.Duration // from starting the server to its first answer
	evicted       int64           // bytes of pages that the last server dropped from memory
}

func newSuite(dir, addr string, flags []string, seed uint64, ballastObjects int) *suite {
	s := &suite{dir: dir, addr: addr, flags: flags, rng: rand.New(rand.NewPCG(seed, 0))}
	for i := range 4 {
		s.plain = append(s.plain, &object{key: fmt.Sprintf("plain:%d", i)})
		s.tokens = append(s.tokens, &object{key: fmt.Sprintf("token:%d", i)})
	}
	s.plain = append(s.plain, &object{key: "plain:a text id"})
	s.tokens = append(s.tokens, &object{key: "token:{with:colon}"})

	s.ballast = &ballast{want: make([]int64, ballastObjects)}
	s.session = &sessionClient{ballast: s.ballast, producer: "crash suite"}
	s.clients = append(s.clients, s.session)
	for i := range 2 {
		t := &tokenClient{number: 10 + i, objects: s.tokens}
		s.tokenClients = append(s.tokenClients, t)
		s.clients = append(s.clients, t,
			&plainClient{number: 20 + i, objects: s.plain},
			&readClient{number: 30 + i, plain: s.plain, tokens: s.tokens},
			&watchClient{objects: s.plain})
	}
	return s
}

// begin starts the server for the first time and loads the ballast.
func (s *suite) begin() error {
	began := time.Now()
	if err := s.start(); err != nil {
		return err
	}
	c, err := s.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Deadline(time.Now().Add(fillMax)); err != nil {
		return err
	}
	if err := s.ballast.load(c); err != nil {
		return err
	}
	s.filled = time.Since(began)
	return s.settle(c)
}

// round puts the server under load, kills it, starts it again and checks.
func (s *suite) round() error {
	if err := s.load(); err != nil {
		return err
	}
	for s.rng.IntN(8) == 0 { // die again, in the middle of recovery
		var err error
		if s.server, err = proc.LaunchTally(s.dir, s.addr, s.flags...); err != nil {
			return err
		}
		time.Sleep(s.between(0, bootMax))
		s.kill()
	}
	if s.rng.IntN(20) == 0 {
		if err := s.verify(); err != nil {
			return err
		}
	}
	if err := s.start(); err != nil {
		return err
	}
	c, err := s.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := s.session.open(c); err != nil {
		return err
	}
	for range 20 {
		if err := s.ballast.check(c, s.rng.IntN(len(s.ballast.want)), 20); err != nil {
			return err
		}
	}
	return s.settle(c)
}

// load runs all clients against the server until it is killed under them.
func (s *suite) load() error {
	var running sync.WaitGroup
	ended := make([]error, len(s.clients))
	for i, client := range s.clients {
		c, err := s.dial()
		if err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(s.rng.Uint64(), 0))
		running.Go(func() {
			ended[i] = client.run(c, rng)
			c.Close()
		})
	}
	time.Sleep(s.between(loadMin, loadMax))
	died := s.server.Exited()
	s.kill()
	running.Wait()
	if died {
		return fmt.Errorf("the server ended by itself:\n%s", s.server.Output())
	}
	for _, err := range ended {
		// A lost connection is what the suite is about; a reply that is wrong, or
		// an error that the server answered, is not.
		var reply wire.Error
		var wrong wrongReply
		if errors.As(err, &reply) || errors.As(err, &wrong) {
			return err
		}
	}
	return nil
}

// settle reads every object while nobody else asks, checks what clients were told
// of it since the last time, and begins the next histories.
func (s *suite) settle(c *wire.Conn) error {
	for i, o := range append(append([]*object{}, s.plain...), s.tokens...) {
		called := clock()
		value, err := o.read(c, i >= len(s.plain))
		if err != nil {
			return err
		}
		if value < o.seen {
			return fmt.Errorf("%s is %d after the restart; a client had seen %d", o.key, value, o.seen)
		}
		if value < o.acked || value > o.acked+o.open {
			return fmt.Errorf("%s is %d; acknowledged are %d and open %d more", o.key, value, o.acked, o.open)
		}
		if len(o.history.ops) > 0 { // none before the first round
			o.told(0, called, input{}, output{value: value})
			s.operations += len(o.history.ops)
			if err := o.history.check(o.key); err != nil {
				return err
			}
		}
		o.history.start(value)
	}
	return nil
}

// end sends what is open again, checks every sum, and verifies the directory.
func (s *suite) end() error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	for _, t := range s.tokenClients {
		if t.last != nil {
			if !t.last.known {
				t.last.o.retried(t.last.delta)
			}
			if err := t.add(c); err != nil {
				return err
			}
		}
	}
	if err := s.settle(c); err != nil {
		return err
	}
	for _, o := range s.tokens {
		if o.open != 0 {
			return fmt.Errorf("%s: %d are still open though every add was acknowledged", o.key, o.open)
		}
	}
	if err := c.Deadline(time.Now().Add(fillMax)); err != nil {
		return err
	}
	if err := s.ballast.checkAll(c); err != nil {
		return err
	}
	if s.evicted, err = readFigure(c, "evicted_bytes"); err != nil {
		return err
	}
	if err := s.server.Stop(); err != nil {
		return err
	}
	return s.verify()
}

// verify runs `tally verify` on the directory of the server, which is down.
func (s *suite) verify() error {
	program, err := proc.Build()
	if err != nil {
		return err
	}
	if out, err := exec.Command(program, "verify", s.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("tally verify: %w\n%s", err, out)
	}
	return nil
}

// lost sums the deltas of plain adds whose reply was lost.
func (s *suite) lost() (n int64) {
	for _, o := range s.plain {
		n += o.open
	}
	return n
}

func (s *suite) start() (err error) {
	if s.server, err = proc.LaunchTally(s.dir, s.addr, s.flags...); err != nil {
		return err
	}
	if err := s.server.Ready(); err != nil {
		return err
	}
	s.starts = append(s.starts, s.server.Start)
	return nil
}

func (s *suite) kill() {
	if s.server != nil {
		s.server.Kill()
	}
}

func (s *suite) dial() (*wire.Conn, error) {
	c, err := wire.Dial(s.addr)
	if err != nil {
		return nil, err
	}
	return c, c.Deadline(time.Now().Add(answerMax))
}

// between draws a duration from the range [from, to).
func (s *suite) between(from, to time.Duration) time.Duration {
	return from + time.Duration(s.rng.Int64N(int64(to-from)))
}
