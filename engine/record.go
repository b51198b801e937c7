package engine

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/table"
)

// A journal record is a run of effects, all applied or none. An effect states
// what is true afterwards (a value, an absence), never a change, so replaying
// it twice, or onto a page that is newer, ends in the same state.
//
//	set        op ns id  n (column zigzag-value)*n
//	set one    op ns id  column zigzag-value        what INCR writes: 12 to 20 bytes
//	clear      op ns id  n column*n
//	delete     op ns id
//	token      op partition fingerprint(12) content(4) unix-ms
//	session    op len producer epoch seq
//	namespace  op len JSON
//	drop       op ns
//
// Numbers are varints (encoding/binary). The op's top bit tells a string id
// (length, bytes) from an integer one. docs/format/record.md says it in full.
const (
	opSet byte = 1 + iota
	opSetOne
	opClear
	opDelete
	opToken
	opSession
	opNamespace
	opDrop

	opText byte = 0x80
)

func appendObject(b []byte, op byte, ns uint32, id counter.ID) []byte {
	if text, ok := id.Text(); ok {
		b = append(b, op|opText)
		b = binary.AppendUvarint(b, uint64(ns))
		b = binary.AppendUvarint(b, uint64(len(text)))
		return append(b, text...)
	}
	n, _ := id.Int()
	b = append(b, op)
	b = binary.AppendUvarint(b, uint64(ns))
	return binary.AppendUvarint(b, n)
}

func appendSetOne(b []byte, ns uint32, id counter.ID, col table.Column, v int64) []byte {
	b = appendObject(b, opSetOne, ns, id)
	b = binary.AppendUvarint(b, uint64(col))
	return binary.AppendVarint(b, v)
}

func appendSet(b []byte, ns uint32, id counter.ID, cells []table.Cell) []byte {
	b = appendObject(b, opSet, ns, id)
	b = binary.AppendUvarint(b, uint64(len(cells)))
	for _, c := range cells {
		b = binary.AppendUvarint(b, uint64(c.Col))
		b = binary.AppendVarint(b, c.Value)
	}
	return b
}

func appendClear(b []byte, ns uint32, id counter.ID, cols ...table.Column) []byte {
	b = appendObject(b, opClear, ns, id)
	b = binary.AppendUvarint(b, uint64(len(cols)))
	for _, c := range cols {
		b = binary.AppendUvarint(b, uint64(c))
	}
	return b
}

func appendDelete(b []byte, ns uint32, id counter.ID) []byte {
	return appendObject(b, opDelete, ns, id)
}

func appendToken(b []byte, partition int, t tokenEntry) []byte {
	b = append(b, opToken)
	b = binary.AppendUvarint(b, uint64(partition))
	b = append(b, t.fingerprint[:]...)
	b = binary.LittleEndian.AppendUint32(b, t.content)
	return binary.AppendUvarint(b, uint64(t.unixMilli))
}

func appendSession(b []byte, producer string, epoch, seq uint64) []byte {
	b = append(b, opSession)
	b = binary.AppendUvarint(b, uint64(len(producer)))
	b = append(b, producer...)
	b = binary.AppendUvarint(b, epoch)
	return binary.AppendUvarint(b, seq)
}

func appendNamespace(b, json []byte) []byte {
	b = append(b, opNamespace)
	b = binary.AppendUvarint(b, uint64(len(json)))
	return append(b, json...)
}

func appendDrop(b []byte, ns uint32) []byte {
	return binary.AppendUvarint(append(b, opDrop), uint64(ns))
}

// effect is one decoded effect. Its strings and slices are valid until the next one is read.
type effect struct {
	raw       []byte // as it stands in the record
	op        byte
	ns        uint32
	id        counter.ID
	cells     []table.Cell // set; clear has only their columns
	partition int
	token     tokenEntry
	producer  string
	epoch     uint64
	seq       uint64
	json      []byte
}

// effectReader reads the effects of a record. It never reads past the record
// and bounds what it allocates by it.
type effectReader struct {
	b   []byte
	err error
}

func (r *effectReader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("a journal record ends or breaks at its %s: %w", what, counter.ErrCorrupt)
	}
	r.b = nil
}

func (r *effectReader) uvarint(what string, max uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > max {
		r.fail(what)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *effectReader) varint(what string) int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail(what)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *effectReader) bytes(what string, n uint64) []byte {
	if uint64(len(r.b)) < n {
		r.fail(what)
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

// next reads one effect into f; false at the end of the record or at damage (see err).
func (r *effectReader) next(f *effect) bool {
	if r.err != nil || len(r.b) == 0 {
		return false
	}
	start := r.b
	op := r.b[0]
	r.b = r.b[1:]
	f.op = op &^ opText
	switch f.op {
	case opSet, opSetOne, opClear, opDelete:
		f.ns = uint32(r.uvarint("namespace", math.MaxUint32))
		if op&opText != 0 {
			text := string(r.bytes("id", r.uvarint("id length", counter.IDBytesMax)))
			f.id = counter.ParseID(text)
			if _, ok := f.id.Text(); !ok {
				r.fail("id: an integer written as a string")
			}
		} else {
			f.id = counter.IntID(r.uvarint("id", math.MaxUint64))
		}
		f.cells = f.cells[:0]
		switch f.op {
		case opSetOne:
			f.cells = append(f.cells, r.cell(true))
		case opSet, opClear:
			for n := r.uvarint("count", 3*counter.CountersMax); n > 0 && r.err == nil; n-- {
				f.cells = append(f.cells, r.cell(f.op == opSet))
			}
		}
	case opToken:
		f.partition = int(r.uvarint("partition", partitionsMax-1))
		copy(f.token.fingerprint[:], r.bytes("fingerprint", fingerprintBytes))
		if c := r.bytes("content", 4); c != nil {
			f.token.content = binary.LittleEndian.Uint32(c)
		}
		f.token.unixMilli = int64(r.uvarint("time", math.MaxInt64))
	case opSession:
		f.producer = string(r.bytes("producer", r.uvarint("producer length", counter.ProducerBytesMax)))
		f.epoch = r.uvarint("epoch", math.MaxUint64)
		f.seq = r.uvarint("sequence", math.MaxUint64)
	case opNamespace:
		f.json = r.bytes("definition", r.uvarint("definition length", math.MaxUint32))
	case opDrop:
		f.ns = uint32(r.uvarint("namespace", math.MaxUint32))
	default:
		r.fail(fmt.Sprintf("operation %d", op))
	}
	f.raw = start[:len(start)-len(r.b)]
	return r.err == nil
}

func (r *effectReader) cell(value bool) table.Cell {
	c := table.Cell{Col: table.Column(r.uvarint("column", 3*counter.CountersMax-1))}
	if value {
		c.Value = r.varint("value")
	}
	return c
}
