package engine

import (
	"math/bits"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/journal"
	"github.com/tally-counter/tally/table"
)

const (
	partitionBits = 4
	partitionsMax = 64 // locks held together are a bit mask
	fenceSlots    = 1024
)

// partition is one slice of the key space: its tables, their memory and the
// tokens of their objects, all owned by mu.
//
// Locks are taken in this order: a session, partitions by rising index, schemaMu.
type partition struct {
	mu sync.Mutex

	index  int
	pool   *table.Pool
	tables []*table.Table // those of all namespaces, for eviction
	clock  int            // next table to evict from
	tokens tokenSet
	cursor table.Cursor
	rec    []byte // the record being built
	cells  []table.Cell
	memory int64 // what e.memory knows of this partition

	pending pendingEffects // of recovery; empty once all are applied
	name    []byte         // scratch

	// fence holds, per hash of an object, the journal position of the last change
	// to any object of that hash: a read must wait for it. Objects that share a
	// slot wait for each other, for the length of one commit at most.
	fence [fenceSlots]Pos

	_ [64]byte // keep neighbours' locks off this cache line
}

// place is where an object lives.
type place struct {
	part int
	key  table.Key
	slot uint32 // of the fence
}

// locate maps an id to its partition and its key there. Integer ids give their
// low bits to the partition number, mixed with the rest so that ids with equal low
// bits spread too; the key keeps only the rest, so partitions cost no bits.
func (e *Engine) locate(id counter.ID) place {
	if text, ok := id.Text(); ok {
		h := xxh3.HashString(text)
		return place{int(h) & e.partMask, table.Key{Text: text, IsText: true}, uint32(h>>32) % fenceSlots}
	}
	n, _ := id.Int()
	q := n >> e.partBits
	h := mix(q)
	return place{int(n+h) & e.partMask, table.Key{Num: q}, uint32(h>>40) % fenceSlots}
}

// idOf is the inverse of locate. The id aliases the key's text.
func (e *Engine) idOf(part int, k table.Key) counter.ID {
	if k.IsText {
		return counter.ParseID(k.Text)
	}
	return counter.IntID(k.Num<<e.partBits | uint64((part-int(mix(k.Num)))&e.partMask))
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), rounds cut to two.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	return x ^ x>>27
}

// table returns the table of ns in this partition, making it if need be.
func (e *Engine) table(part *partition, ns *namespace) *table.Table {
	t := ns.tables[part.index]
	if t == nil {
		t = table.New(part.pool, &pageLoader{engine: e, prefix: pagePrefix(ns.number, part.index)})
		ns.tables[part.index] = t
		part.tables = append(part.tables, t)
	}
	return t
}

func (part *partition) drop(t *table.Table) {
	for i, o := range part.tables {
		if o == t {
			part.tables = append(part.tables[:i], part.tables[i+1:]...)
			delete(part.pending, t)
			break
		}
	}
	t.Close()
}

// fenceAll makes every read wait for pos. The caller holds every partition.
func (e *Engine) fenceAll(pos Pos) {
	for i := range e.parts {
		fence := &e.parts[i].fence
		for j := range fence {
			fence[j] = pos
		}
	}
}

// commit appends the record in part.rec to the journal and returns its position.
func (e *Engine) commit(part *partition) Pos {
	pos := e.journal.Append(part.rec)
	e.settle(part)
	return pos
}

// settle keeps the account of memory and, over the budget, lets this partition
// drop cold pages before its lock is released: whoever loads pays.
func (e *Engine) settle(part *partition) {
	if now := part.pool.Bytes(); now != part.memory {
		e.memory.Add(now - part.memory)
		part.memory = now
	}
	if over := e.memory.Load() - e.limit(); over > 0 && len(part.tables) > 0 {
		e.relieve(part, min(over, evictStepBytes))
	}
}

func (e *Engine) lockAll() { e.lockMask(e.maskAll()) }

func (e *Engine) unlockAll() { e.unlockMask(e.maskAll()) }

func (e *Engine) lockMask(mask uint64) {
	for m := mask; m != 0; m &= m - 1 {
		e.parts[bits.TrailingZeros64(m)].mu.Lock()
	}
}

func (e *Engine) unlockMask(mask uint64) {
	for m := mask; m != 0; m &= m - 1 {
		e.parts[bits.TrailingZeros64(m)].mu.Unlock()
	}
}

// Pos is a position in the journal: what carries it may be shown once the
// journal is on disk up to there. Zero asks for nothing.
type Pos = journal.Pos
