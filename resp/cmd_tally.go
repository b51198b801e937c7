package resp

import (
	"math"
	"strings"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// tallyCommands say what Redis has no words for.
var tallyCommands = []command{
	{name: "tally.add", arity: -4, flags: write | fast | noMulti, keys: oneKey, group: "tally", since: "0.1.0",
		syntax: "key counter delta [counter delta ...] [TOKEN token]",
		summary: "Adds to counters of one object, all or none, and answers the outcome (applied, duplicate, rejected) and each counter's value." +
			" With a token a repetition changes nothing and is answered duplicate.", run: tallyAdd},
	{name: "tally.madd", arity: -4, flags: write | noMulti, group: "tally", since: "0.1.0", slowFrom: slowItems,
		syntax: "[SESSION producer epoch seq] [COUNTS] [DELTAS] [TOKENS] [COUNTER counter] numitems item [item ...]",
		summary: "Adds to many objects, each item by itself. An item is: key counter delta; with COUNTER: key delta; with DELTAS: key n counter delta ..., n pairs;" +
			" with TOKENS a token follows each item, empty for none. Answers an array of [outcome, value ...] or [failed, error]; with COUNTS" +
			" [applied, duplicate, rejected, failed, exceptions], the last an array of [index, rejected, value ...] and [index, failed, error]." +
			" With SESSION the batch counts exactly once.", run: tallyMAdd, keysOf: maddKeys},
	{name: "tally.mget", arity: -4, flags: read | noMulti, group: "tally", since: "0.1.0", slowFrom: slowItems,
		syntax:  "numcounters counter [counter ...] key [key ...]",
		summary: "Reads the same counters of many objects: one flat array, object by object, nil for an absent counter.", run: tallyMGet, keysOf: mgetKeys},
	{name: "tally.schema", arity: -2, flags: admin | noMulti, group: "tally", since: "0.1.0", slowFrom: always,
		syntax:  "LIST | GET namespace | SET namespace counter [MIN integer] [MAX integer] [POLICY reject | clamp] | NAMESPACE namespace | DROP namespace",
		summary: "Lists, declares and drops namespaces and counters, with their bounds.", run: tallySchema},
	{name: "tally.session", arity: 3, flags: write | noMulti, group: "tally", since: "0.1.0", syntax: "OPEN producer | CLOSE producer",
		summary: "Opens a producer's session: answers the epoch, which fences older holders off, and the last sequence number applied.", run: tallySession},
	{name: "tally.scan", arity: -2, flags: read | noMulti, group: "tally", since: "0.1.0", slowFrom: always,
		syntax: "namespace [FROM id] [COUNT count]",
		summary: "Reads a namespace in id order: answers the id to go on from, or nil at the end, and an array of [id, [counter, value ...]]." +
			" The server keeps nothing between calls.", run: tallyScan},
	{name: "tally.stats", arity: 1, flags: noMulti, group: "tally", since: "0.1.0", summary: "Answers every figure of the engine as a map.", run: tallyStats},
	{name: "tally.checkpoint", arity: 1, flags: admin | noMulti, group: "tally", since: "0.1.0", slowFrom: always,
		summary: "Writes a checkpoint now.", run: save},
	{name: "tally.help", arity: 1, group: "tally", since: "0.1.0", summary: "Lists the commands that are Tally's own.", run: tallyHelp},
}

// slowItems is the number of arguments from which a batch is run beside the
// event loop: about a millisecond of work.
const slowItems = 16 << 10

// addScratch is the memory of a batch, reused by the next.
type addScratch struct {
	adds   []engine.Add
	deltas []counter.Delta
	values []int64
}

// reset makes room for so many items and deltas.
func (s *addScratch) reset(items, deltas int) {
	if cap(s.adds) < items {
		s.adds = make([]engine.Add, 0, items)
	}
	if cap(s.deltas) < deltas {
		s.deltas, s.values = make([]counter.Delta, 0, deltas), make([]int64, deltas)
	}
	s.adds, s.deltas = s.adds[:0], s.deltas[:0]
}

func (s *addScratch) trim() {
	if cap(s.adds) > keptMax || cap(s.deltas) > 2*keptMax {
		*s = addScratch{}
	}
}

// delta appends one delta.
func (s *addScratch) delta(name, by []byte) error {
	n, ok := parseInt(by)
	if !ok {
		return errorf("ERR delta '%.32s' is not an integer or out of range", by)
	}
	s.deltas = append(s.deltas, counter.Delta{Counter: view(name), By: n})
	return nil
}

// item appends an add made of the deltas appended since from.
func (s *addScratch) item(key, token []byte, from int) error {
	k, err := parseKey(key)
	if err != nil {
		return err
	}
	to := len(s.deltas)
	s.adds = append(s.adds, engine.Add{Key: k, Deltas: s.deltas[from:to:to], Values: s.values[from:to:to], Token: view(token)})
	return nil
}

func tallyAdd(c *conn, args [][]byte) error {
	var token []byte
	if n := len(args); n > 4 && is(args[n-2], "TOKEN") {
		args, token = args[:n-2], args[n-1]
	}
	if len(args)%2 != 0 {
		return errorf("ERR wrong number of arguments for '%s' command", c.cmd.name)
	}
	s := &c.batch
	s.reset(1, len(args)/2-1)
	for i := 2; i < len(args); i += 2 {
		if err := s.delta(args[i], args[i+1]); err != nil {
			return err
		}
	}
	if err := s.item(args[1], token, 0); err != nil {
		return err
	}
	pos, err := c.engine.AddBatch(s.adds)
	c.after(pos)
	if err != nil {
		return err
	}
	if a := &s.adds[0]; a.Outcome == counter.Failed {
		return a.Err
	} else {
		c.outcome(a)
	}
	return nil
}

// outcome answers one add: [outcome, value …], or [failed, error].
func (c *conn) outcome(a *engine.Add) {
	c.w.array(1 + details(a))
	c.w.bulkString(a.Outcome.String())
	c.details(a)
}

// details is how many replies c.details writes.
func details(a *engine.Add) int {
	if a.Outcome == counter.Failed {
		return 1
	}
	return len(a.Deltas)
}

func (c *conn) details(a *engine.Add) {
	if a.Outcome == counter.Failed {
		c.w.bulkString(errorText(a.Err))
		return
	}
	for _, v := range a.Values[:len(a.Deltas)] {
		c.w.int(v)
	}
}

// madd is a parsed TALLY.MADD.
type madd struct {
	session               engine.Session
	inSession             bool
	counts, deltas, token bool
	counter               []byte // of every item, if given
	items                 int
	at                    int // index of the first item
}

// parseMAdd reads the options, which end at the number of items.
func parseMAdd(args [][]byte) (m madd, err error) {
	for i := 1; i < len(args); i++ {
		switch left := len(args) - i - 1; {
		case is(args[i], "SESSION") && left >= 3 && !m.inSession:
			epoch, err1 := integer(args[i+2])
			seq, err2 := integer(args[i+3])
			if err1 != nil || err2 != nil || epoch < 0 || seq < 1 {
				return m, replyError("ERR SESSION needs a producer, its epoch, and a sequence number from 1")
			}
			m.session = engine.Session{Producer: view(args[i+1]), Epoch: uint64(epoch), Seq: uint64(seq)}
			m.inSession = true
			i += 3
		case is(args[i], "COUNTS"):
			m.counts = true
		case is(args[i], "DELTAS"):
			m.deltas = true
		case is(args[i], "TOKENS"):
			m.token = true
		case is(args[i], "COUNTER") && left >= 1:
			m.counter = args[i+1]
			i++
		default:
			n, ok := parseInt(args[i])
			switch {
			case !ok:
				return m, errorf("ERR '%.64s' is neither an option nor the number of items", args[i])
			case n < 1 || n > counter.BatchMax:
				return m, errorf("ERR a batch has 1 to %d items, not %d", counter.BatchMax, n)
			case m.counter != nil && m.deltas:
				return m, replyError("ERR COUNTER and DELTAS do not go together: with COUNTER an item is key delta")
			case m.inSession && m.token:
				return m, replyError("ERR SESSION and TOKENS do not go together: a session counts the batch once by itself")
			}
			m.items, m.at = int(n), i+1
			return m, nil
		}
	}
	return m, errSyntax
}

// each calls item with every item's key, deltas (counter, delta, …; with COUNTER
// one delta alone) and token. Every argument must belong to an item.
func (m *madd) each(args [][]byte, item func(key []byte, deltas [][]byte, token []byte) error) error {
	at := m.at
	for n := 0; n < m.items; n++ {
		from, size := at+1, 2
		if m.counter != nil {
			size = 1
		}
		if m.deltas {
			if from >= len(args) {
				return m.short(n)
			}
			pairs, ok := parseInt(args[from])
			if !ok || pairs < 1 || pairs > counter.DeltasMax {
				return errorf("ERR item %d: '%.32s' is not a number of deltas, 1 to %d", n, args[from], counter.DeltasMax)
			}
			from, size = from+1, 2*int(pairs)
		}
		next := from + size
		if m.token {
			next++
		}
		if next > len(args) {
			return m.short(n)
		}
		var token []byte
		if m.token {
			token = args[next-1]
		}
		if err := item(args[at], args[from:from+size], token); err != nil {
			return errorf("%s (item %d; nothing was changed)", errorText(err), n)
		}
		at = next
	}
	if at != len(args) {
		return errorf("ERR %d items are announced, and %d arguments follow them", m.items, len(args)-at)
	}
	return nil
}

func (m *madd) short(item int) error {
	return errorf("ERR %d items are announced, and the arguments end in item %d", m.items, item)
}

func maddKeys(args [][]byte, visit func([]byte)) error {
	m, err := parseMAdd(args)
	if err != nil {
		return err
	}
	return m.each(args, func(key []byte, _ [][]byte, _ []byte) error { visit(key); return nil })
}

func tallyMAdd(c *conn, args [][]byte) error {
	m, err := parseMAdd(args)
	if err != nil {
		return err
	}
	s := &c.batch
	s.reset(min(m.items, len(args)), len(args))
	err = m.each(args, func(key []byte, deltas [][]byte, token []byte) error {
		from := len(s.deltas)
		if m.counter != nil {
			if err := s.delta(m.counter, deltas[0]); err != nil {
				return err
			}
		} else {
			for i := 0; i < len(deltas); i += 2 {
				if err := s.delta(deltas[i], deltas[i+1]); err != nil {
					return err
				}
			}
		}
		return s.item(key, token, from)
	})
	if err != nil {
		return err
	}
	var pos engine.Pos
	if m.inSession {
		pos, err = c.engine.AddSession(m.session, s.adds)
	} else {
		pos, err = c.engine.AddBatch(s.adds)
	}
	c.after(pos)
	if err != nil {
		return err
	}
	if m.counts {
		c.countOutcomes(s.adds)
		return nil
	}
	c.w.array(len(s.adds))
	for i := range s.adds {
		c.outcome(&s.adds[i])
	}
	return nil
}

// countOutcomes answers how many adds had each outcome, and those that were
// refused one by one.
func (c *conn) countOutcomes(adds []engine.Add) {
	var n [counter.Failed + 1]int
	for i := range adds {
		n[adds[i].Outcome]++
	}
	c.w.array(5)
	for _, count := range n {
		c.w.int(int64(count))
	}
	refused := n[counter.Rejected] + n[counter.Failed]
	c.w.array(refused)
	for i := 0; i < len(adds) && refused > 0; i++ {
		a := &adds[i]
		if a.Outcome != counter.Rejected && a.Outcome != counter.Failed {
			continue
		}
		refused--
		c.w.array(2 + details(a))
		c.w.int(int64(i))
		c.w.bulkString(a.Outcome.String())
		c.details(a)
	}
}

// splitMGet separates counters and keys.
func splitMGet(args [][]byte) (names, keys [][]byte, err error) {
	n, ok := parseInt(args[1])
	if !ok || n < 1 || n > counter.CountersMax {
		return nil, nil, errorf("ERR '%.32s' is not a number of counters, 1 to %d", args[1], counter.CountersMax)
	}
	if int64(len(args)) < 3+n {
		return nil, nil, errorf("ERR %d counters are announced, and then a key must follow", n)
	}
	return args[2 : 2+n], args[2+n:], nil
}

func mgetKeys(args [][]byte, visit func([]byte)) error {
	_, keys, err := splitMGet(args)
	for _, k := range keys {
		visit(k)
	}
	return err
}

// cellsMax bounds the values that one TALLY.MGET answers.
const cellsMax = 1 << 20

func tallyMGet(c *conn, args [][]byte) error {
	names, keys, err := splitMGet(args)
	if err != nil {
		return err
	}
	if len(names)*len(keys) > cellsMax {
		return errorf("ERR %d counters of %d objects are more than %d values; ask for fewer at once", len(names), len(keys), cellsMax)
	}
	c.names = c.names[:0]
	for _, name := range names {
		c.names = append(c.names, view(name))
	}
	c.keys = c.keys[:0]
	for _, b := range keys {
		k, err := parseKey(b)
		if err != nil {
			return err
		}
		c.keys = append(c.keys, k)
	}
	values, present := c.cells(len(names) * len(keys))
	pos, err := c.engine.ReadBatch(c.keys, c.names, values, present, nil)
	if err != nil {
		return err
	}
	c.after(pos)
	c.w.array(len(values))
	for i, v := range values {
		if present[i] {
			c.w.int(v)
		} else {
			c.w.null()
		}
	}
	return nil
}

func tallySchema(c *conn, args [][]byte) error {
	var pos engine.Pos
	var err error
	switch sub := upper(args[1]); {
	case sub == "LIST" && len(args) == 2:
		c.listNamespaces()
		return nil
	case sub == "GET" && len(args) == 3:
		return c.showNamespace(string(args[2]))
	case sub == "SET" && len(args) >= 4:
		var s counter.Schema
		if s, err = parseSchema(args[3:]); err == nil {
			pos, err = c.engine.DeclareCounter(view(args[2]), s)
		}
	case sub == "NAMESPACE" && len(args) == 3:
		pos, err = c.engine.DeclareNamespace(view(args[2]))
	case sub == "DROP" && len(args) == 3:
		pos, err = c.engine.DropNamespace(view(args[2]))
	case sub == "HELP" && len(args) == 2:
		c.help("TALLY.SCHEMA", strings.Split(c.cmd.syntax, " | ")...)
		return nil
	default:
		return badSubcommand("TALLY.SCHEMA", args[1])
	}
	c.after(pos)
	if err != nil {
		return err
	}
	c.w.ok()
	return nil
}

func parseSchema(args [][]byte) (counter.Schema, error) {
	s := counter.Undeclared(view(args[0]))
	for i := 1; i < len(args); i += 2 {
		if i+1 == len(args) {
			return s, errSyntax
		}
		var err error
		switch {
		case is(args[i], "MIN"):
			s.Min, err = integer(args[i+1])
		case is(args[i], "MAX"):
			s.Max, err = integer(args[i+1])
		case is(args[i], "POLICY") && is(args[i+1], "REJECT"):
			s.Policy = counter.Reject
		case is(args[i], "POLICY") && is(args[i+1], "CLAMP"):
			s.Policy = counter.Clamp
		default:
			err = errSyntax
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func (c *conn) listNamespaces() {
	all := c.engine.Namespaces()
	c.w.array(len(all))
	for _, ns := range all {
		c.w.dict(3)
		c.w.bulkString("namespace")
		c.w.bulkString(ns.Name)
		c.w.bulkString("objects")
		c.w.int(ns.Objects)
		c.w.bulkString("counters")
		c.w.int(int64(len(ns.Counters)))
	}
}

func (c *conn) showNamespace(name string) error {
	for _, ns := range c.engine.Namespaces() {
		if ns.Name != name {
			continue
		}
		c.w.array(len(ns.Counters))
		for _, s := range ns.Counters {
			c.schema(s)
		}
		return nil
	}
	return errorf("NOTFOUND there is no namespace '%.255s'; TALLY.SCHEMA LIST names those there are", name)
}

func (c *conn) schema(s counter.Schema) {
	c.w.dict(5)
	c.w.bulkString("counter")
	c.w.bulkString(s.Name)
	c.w.bulkString("kind")
	c.w.bulkString(s.Kind.String())
	c.w.bulkString("min")
	c.bound(s.Min, math.MinInt64)
	c.w.bulkString("max")
	c.bound(s.Max, math.MaxInt64)
	c.w.bulkString("policy")
	c.w.bulkString(s.Policy.String())
}

func (c *conn) bound(v, none int64) {
	if v == none {
		c.w.null()
	} else {
		c.w.int(v)
	}
}

func tallySession(c *conn, args [][]byte) error {
	switch {
	case is(args[1], "OPEN"):
		epoch, seq, pos, err := c.engine.OpenSession(view(args[2]))
		c.after(pos)
		if err != nil {
			return err
		}
		c.pair(int64(epoch), int64(seq))
	case is(args[1], "CLOSE"):
		pos, err := c.engine.CloseSession(view(args[2]))
		c.after(pos)
		if err != nil {
			return err
		}
		c.w.ok()
	default:
		return errSyntax
	}
	return nil
}

func tallyScan(c *conn, args [][]byte) error {
	from, count := counter.IntID(0), 100
	for i := 2; i < len(args); i += 2 {
		if i+1 == len(args) {
			return errSyntax
		}
		switch {
		case is(args[i], "FROM"):
			from = counter.ParseID(view(args[i+1]))
		case is(args[i], "COUNT"):
			n, err := integer(args[i+1])
			if err != nil || n < 1 || n > scanCountMax {
				return errorf("ERR COUNT is 1 to %d", scanCountMax)
			}
			count = int(n)
		default:
			return errSyntax
		}
	}
	page := writer{resp3: c.w.resp3}
	n := 0
	var digits []byte
	next, more, pos, err := c.engine.Scan(view(args[1]), from, count, func(id counter.ID, values []counter.Value) bool {
		digits = id.Append(digits[:0])
		page.array(2)
		page.bulk(digits)
		page.array(2 * len(values))
		for _, v := range values {
			page.bulkString(v.Counter)
			page.int(v.Value)
		}
		n++
		return len(page.b) < c.server.opts.OutputBytesMax/2
	})
	if err != nil {
		return err
	}
	c.after(pos)
	c.w.array(2)
	if more {
		c.w.bulk(next.Append(digits[:0]))
	} else {
		c.w.null()
	}
	c.w.array(n)
	c.w.b = append(c.w.b, page.b...)
	return nil
}

func tallyStats(c *conn, _ [][]byte) error {
	e := c.engine.Stats()
	c.w.figures(figures(&e))
	return nil
}

func tallyHelp(c *conn, _ [][]byte) error {
	var own []*command
	for _, cmd := range sorted() {
		if cmd.group == "tally" {
			own = append(own, cmd)
		}
	}
	c.w.array(2 * len(own))
	for _, cmd := range own {
		c.w.simple(strings.TrimSpace(strings.ToUpper(cmd.name) + " " + cmd.syntax))
		c.w.simple("    " + cmd.summary)
	}
	return nil
}
