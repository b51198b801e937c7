package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/table"
)

// Columns of a row. A counter's number is its column; what the engine keeps
// about an object or a counter stands in hidden columns of the same row, so it
// is stored, moved, evicted and recovered like any counter.
const (
	columnObjectExpiry  table.Column = counter.CountersMax     // unix ms, of the object
	columnCounterExpiry table.Column = 2 * counter.CountersMax // + a counter's column: unix ms, of that counter
	columnNone          table.Column = 4095                    // never in use: reads as absent
)

func hidden(c table.Column) bool { return c >= columnObjectExpiry }

// namespace is one namespace in use. Its identity (number, name) never changes;
// its columns are replaced as a whole, so that hot calls read them without a lock.
type namespace struct {
	number  uint32 // names it in records and in the page store; never used twice
	name    string
	columns atomic.Pointer[columns]

	// tables has one slot a partition, nil until used. Slot p, and gone as seen
	// by partition p, are guarded by that partition's lock.
	tables []*table.Table
	gone   bool // dropped: every partition's lock was held when it was set
}

// columns is an immutable schema.
type columns struct {
	byName  map[string]table.Column
	defs    []counter.Schema // by column
	bounded bool             // some counter has bounds
	expires bool             // some object or counter of the namespace has had an expiry
}

// plain tells whether an add is a sum and nothing else.
func (c *columns) plain(col table.Column) bool {
	return !c.expires && (!c.bounded || !c.defs[col].Bounded())
}

func (c *columns) clone() *columns {
	n := *c
	n.byName = maps.Clone(c.byName)
	n.defs = slices.Clone(c.defs)
	return &n
}

func newNamespace(number uint32, name string, partitions int) *namespace {
	ns := &namespace{number: number, name: name, tables: make([]*table.Table, partitions)}
	ns.columns.Store(&columns{byName: map[string]table.Column{}})
	return ns
}

// namespaceRecord is a namespace's definition as the journal and the page store
// keep it (JSON: it is rare, and people may have to read it).
type namespaceRecord struct {
	Number   uint32          `json:"number"`
	Name     string          `json:"name"`
	Expires  bool            `json:"expires,omitempty"`
	Counters []counterRecord `json:"counters"`
}

type counterRecord struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Min    *int64 `json:"min,omitempty"`
	Max    *int64 `json:"max,omitempty"`
	Policy string `json:"policy,omitempty"`
}

func (ns *namespace) record(c *columns) []byte {
	r := namespaceRecord{Number: ns.number, Name: ns.name, Expires: c.expires, Counters: make([]counterRecord, len(c.defs))}
	none := counter.Undeclared("")
	for i, s := range c.defs {
		d := counterRecord{Name: s.Name, Kind: s.Kind.String()}
		if s.Min != none.Min {
			d.Min = &s.Min
		}
		if s.Max != none.Max {
			d.Max = &s.Max
		}
		if s.Bounded() {
			d.Policy = s.Policy.String()
		}
		r.Counters[i] = d
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // plain strings and numbers always encode
	}
	return b
}

func parseNamespaceRecord(b []byte) (namespaceRecord, *columns, error) {
	var r namespaceRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return r, nil, fmt.Errorf("a namespace's definition does not parse: %v: %w", err, counter.ErrCorrupt)
	}
	if err := counter.CheckNamespace(r.Name); err != nil || len(r.Counters) > counter.CountersMax {
		return r, nil, fmt.Errorf("namespace %d: name %.40q or %d counters out of limits: %w", r.Number, r.Name, len(r.Counters), counter.ErrCorrupt)
	}
	c := &columns{byName: make(map[string]table.Column, len(r.Counters)), expires: r.Expires}
	for i, d := range r.Counters {
		s := counter.Undeclared(d.Name)
		if d.Min != nil {
			s.Min = *d.Min
		}
		if d.Max != nil {
			s.Max = *d.Max
		}
		if d.Policy == counter.Clamp.String() {
			s.Policy = counter.Clamp
		}
		if _, twice := c.byName[s.Name]; twice || d.Kind != counter.Total.String() || s.Validate() != nil {
			return r, nil, fmt.Errorf("namespace %q: counter %d (%.40q, kind %q) is not valid: %w", r.Name, i, d.Name, d.Kind, counter.ErrCorrupt)
		}
		c.add(s)
	}
	return r, c, nil
}

func (c *columns) add(s counter.Schema) table.Column {
	col := table.Column(len(c.defs))
	c.defs = append(c.defs, s)
	c.byName[s.Name] = col
	c.bounded = c.bounded || s.Bounded()
	return col
}

// lookup finds a namespace in use, or nil.
func (e *Engine) lookup(name string) *namespace { return (*e.names.Load())[name] }

// lookupColumn finds a namespace and a counter in use; ok is false when either is absent.
func (e *Engine) lookupColumn(ns, name string) (*namespace, *columns, table.Column, bool) {
	n := e.lookup(ns)
	if n == nil {
		return nil, nil, 0, false
	}
	c := n.columns.Load()
	col, ok := c.byName[name]
	return n, c, col, ok
}

// column finds the counter to write to, declaring it and its namespace when the
// schema is open.
func (e *Engine) column(ns, name string) (*namespace, *columns, table.Column, error) {
	if n, c, col, ok := e.lookupColumn(ns, name); ok {
		return n, c, col, nil
	}
	if err := counter.CheckNamespace(ns); err != nil {
		return nil, nil, 0, err
	}
	if err := counter.CheckName(name); err != nil {
		return nil, nil, 0, err
	}
	if e.opts.ClosedSchema {
		return nil, nil, 0, fmt.Errorf("counter %q of namespace %q is not declared; declare it, or open the schema: %w", name, ns, counter.ErrReadOnly)
	}
	if _, err := e.declare(strings.Clone(ns), func(c *columns) error {
		if _, ok := c.byName[name]; ok {
			return nil
		}
		return c.declare(counter.Undeclared(strings.Clone(name)))
	}); err != nil {
		return nil, nil, 0, err
	}
	n, c, col, ok := e.lookupColumn(ns, name)
	if !ok { // dropped since
		return nil, nil, 0, fmt.Errorf("namespace %q is being dropped; try again: %w", ns, counter.ErrBusy)
	}
	return n, c, col, nil
}

func (c *columns) declare(s counter.Schema) error {
	if col, ok := c.byName[s.Name]; ok {
		c.defs[col] = s
		c.bounded = slices.ContainsFunc(c.defs, counter.Schema.Bounded)
		return nil
	}
	if len(c.defs) == counter.CountersMax {
		return fmt.Errorf("the namespace has %d counters, the limit; counter %q is not added: %w", counter.CountersMax, s.Name, counter.ErrInvalid)
	}
	c.add(s)
	return nil
}

// declare changes the schema of a namespace, creating it if need be, and records
// it in the journal before anyone can write by it.
func (e *Engine) declare(name string, change func(*columns) error) (Pos, error) {
	if err := counter.CheckNamespace(name); err != nil {
		return 0, err
	}
	if err := e.writable(); err != nil {
		return 0, err
	}
	e.schemaMu.Lock()
	defer e.schemaMu.Unlock()
	names := *e.names.Load()
	ns := names[name]
	fresh := ns == nil
	if fresh {
		if len(names) >= counter.NamespacesMax {
			return 0, fmt.Errorf("there are %d namespaces, the limit; %.40q is not added: %w", len(names), name, counter.ErrInvalid)
		}
		ns = newNamespace(e.nextNamespace, name, len(e.parts))
	}
	c := ns.columns.Load().clone()
	if err := change(c); err != nil {
		return 0, err
	}
	pos := e.journal.Append(appendNamespace(nil, ns.record(c)))
	ns.columns.Store(c)
	if fresh {
		e.nextNamespace++
		e.publish(func(m map[string]*namespace) { m[name] = ns })
	}
	return pos, nil
}

// publish replaces the map of namespaces. The caller holds schemaMu.
func (e *Engine) publish(change func(map[string]*namespace)) {
	m := maps.Clone(*e.names.Load())
	change(m)
	e.names.Store(&m)
}

// DeclareNamespace creates namespace ns unless it exists.
func (e *Engine) DeclareNamespace(ns string) (Pos, error) {
	return e.declare(strings.Clone(ns), func(*columns) error { return nil })
}

// DeclareCounter declares a counter of namespace ns, or changes its bounds: the
// change holds for every add that begins after it; values that stand outside new
// bounds stay and may only move towards them.
func (e *Engine) DeclareCounter(ns string, s counter.Schema) (Pos, error) {
	if err := s.Validate(); err != nil {
		return 0, err
	}
	s.Name = strings.Clone(s.Name)
	return e.declare(strings.Clone(ns), func(c *columns) error { return c.declare(s) })
}

// DropNamespace removes a namespace with its schema and all its objects.
// ErrNotFound when there is none.
func (e *Engine) DropNamespace(name string) (Pos, error) {
	return e.dropWhere(func(ns *namespace) bool { return ns.name == name }, false)
}

// Clear removes every object of every namespace; schemas stay.
func (e *Engine) Clear() (Pos, error) {
	pos, err := e.dropWhere(everything, true)
	if errors.Is(err, counter.ErrNotFound) {
		return 0, nil // no namespace, nothing to clear
	}
	return pos, err
}

func everything(*namespace) bool { return true }

// dropWhere drops the namespaces that match; with keep each is declared anew,
// empty, under a new number. Numbers are never reused, so what the page store
// still holds of the old one can be removed at leisure.
func (e *Engine) dropWhere(match func(*namespace) bool, keep bool) (Pos, error) {
	if err := e.Admit(); err != nil {
		return 0, err
	}
	e.lockAll()
	defer e.unlockAll()
	rec := e.drop(nil, match, keep)
	if len(rec) == 0 {
		return 0, fmt.Errorf("there is no such namespace: %w", counter.ErrNotFound)
	}
	pos := e.journal.Append(rec)
	e.fenceAll(pos)
	return pos, nil
}

// drop does dropWhere's work for a caller that holds every partition, and
// appends the effects to rec.
func (e *Engine) drop(rec []byte, match func(*namespace) bool, keep bool) []byte {
	e.schemaMu.Lock()
	defer e.schemaMu.Unlock()
	for _, ns := range e.sortedNamespaces() {
		if !match(ns) {
			continue
		}
		rec = appendDrop(rec, ns.number)
		e.forget(ns)
		var fresh *namespace
		if keep {
			fresh = newNamespace(e.nextNamespace, ns.name, len(e.parts))
			e.nextNamespace++
			fresh.columns.Store(ns.columns.Load())
			rec = appendNamespace(rec, fresh.record(fresh.columns.Load()))
		}
		e.publish(func(m map[string]*namespace) {
			delete(m, ns.name)
			if keep {
				m[ns.name] = fresh
			}
		})
	}
	return rec
}

// forget frees the memory of a dropped namespace and leaves its pages to the
// next checkpoint. The caller holds every partition and schemaMu.
func (e *Engine) forget(ns *namespace) {
	ns.gone = true
	for i, t := range ns.tables {
		if t != nil {
			e.parts[i].drop(t)
			ns.tables[i] = nil
		}
	}
	e.dropped = append(e.dropped, ns.number)
}

func (e *Engine) sortedNamespaces() []*namespace {
	all := slices.Collect(maps.Values(*e.names.Load()))
	slices.SortFunc(all, func(a, b *namespace) int { return int(int64(a.number) - int64(b.number)) })
	return all
}

// NamespaceInfo describes one namespace.
type NamespaceInfo struct {
	Name     string           `json:"name"`
	Objects  int64            `json:"objects"`
	Counters []counter.Schema `json:"counters"`
}

// Namespaces lists the namespaces in use, by name.
func (e *Engine) Namespaces() []NamespaceInfo {
	if err := e.catchUpAll(nil); err != nil {
		e.log.Warn("objects are counted without what recovery could not apply", "error", err)
	}
	var out []NamespaceInfo
	for _, ns := range *e.names.Load() {
		info := NamespaceInfo{Name: ns.name, Counters: slices.Clone(ns.columns.Load().defs)}
		for p := range e.parts {
			part := &e.parts[p]
			part.mu.Lock()
			if t := ns.tables[p]; t != nil {
				info.Objects += t.Rows()
			}
			part.mu.Unlock()
		}
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b NamespaceInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}
