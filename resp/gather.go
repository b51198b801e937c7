package resp

import (
	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// gather collects the increments that an event loop reads in one round, of all
// its connections, for one call of the engine: their cache misses overlap there,
// and a partition's effects are one journal record instead of one each.
//
// An increment that is gathered has not happened yet, which nobody can tell: it
// is not answered either. Whatever else its connection asks runs after it, since
// every other reply of that connection runs the gathered ones first.
type gather struct {
	engine *engine.Engine
	adds   []engine.Add // their deltas and values stand in the arrays below
	deltas []counter.Delta
	values []int64
	conns  []*conn
	n      int
	text   []byte // keys and names: what they were read into is read into again
}

const (
	gatherMax = 1024

	// gatherMin is the number of increments from which a batch costs less than
	// one call for each.
	gatherMin = 32
)

func newGather(e *engine.Engine) *gather {
	g := &gather{
		engine: e,
		adds:   make([]engine.Add, gatherMax),
		deltas: make([]counter.Delta, gatherMax),
		values: make([]int64, gatherMax),
		conns:  make([]*conn, gatherMax),
	}
	for i := range g.adds {
		g.adds[i].Deltas, g.adds[i].Values = g.deltas[i:i+1:i+1], g.values[i:i+1:i+1]
	}
	return g
}

// An increment is what a command that adds to one counter asks for.
type increment func(args [][]byte) (name []byte, by int64, err error)

// takes gathers a request if it is an increment that can wait.
func (g *gather) takes(c *conn, cmd *command, args [][]byte) bool {
	if cmd.increment == nil || c.multi.open || c.silent != replyOn {
		return false
	}
	name, by, err := cmd.increment(args)
	if err != nil {
		return false
	}
	k, err := parseKey(g.keep(args[1]))
	if err != nil {
		return false
	}
	d := &g.deltas[g.n]
	d.By = by
	if name == nil {
		d.Counter = counter.ValueCounter
	} else {
		d.Counter = view(g.keep(name))
	}
	g.adds[g.n].Key = k
	g.conns[g.n] = c
	c.gathered++
	c.ran++
	if g.n++; g.n == gatherMax {
		g.run()
	}
	return true
}

func (g *gather) keep(b []byte) []byte {
	from := len(g.text)
	g.text = append(g.text, b...)
	return g.text[from:]
}

// run applies what was gathered and writes the replies.
func (g *gather) run() {
	if g.n == 0 {
		return
	}
	if g.n < gatherMin {
		g.runSingly()
	} else {
		g.runBatch()
	}
	clear(g.conns[:g.n])
	g.n, g.text = 0, g.text[:0]
}

func (g *gather) runSingly() {
	refused := g.engine.Admit()
	for i := range g.n {
		a := &g.adds[i]
		v, pos, err := int64(0), engine.Pos(0), refused
		if err == nil {
			v, pos, err = g.engine.Add(a.Key, g.deltas[i].Counter, g.deltas[i].By)
		}
		g.conns[i].incremented(v, pos, err)
	}
}

func (g *gather) runBatch() {
	pos, refused := g.engine.AddBatch(g.adds[:g.n])
	for i := range g.n {
		a := &g.adds[i]
		err := refused
		if err == nil {
			err = a.Err
		}
		g.conns[i].incremented(a.Values[0], pos, err)
	}
}

// incremented answers an increment that was gathered.
func (c *conn) incremented(v int64, pos engine.Pos, err error) {
	c.gathered--
	c.due++
	c.after(pos)
	if err != nil {
		c.w.error(err)
		c.server.stats.errors.Add(1)
		return
	}
	c.w.int(v)
}
