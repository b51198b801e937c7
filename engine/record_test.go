package engine

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/table"
)

func TestEffectsReadBack(t *testing.T) {
	long := counter.ParseID(strings.Repeat("x", counter.IDBytesMax))
	cells := []table.Cell{{Col: 0, Value: math.MinInt64}, {Col: 1023, Value: 0}, {Col: 3071, Value: math.MaxInt64}}
	token := tokenEntry{fingerprint: [fingerprintBytes]byte{1, 11: 2}, content: math.MaxUint32, unixMilli: 1}
	var rec []byte
	rec = appendSetOne(rec, 1, counter.IntID(math.MaxUint64), 7, -1)
	rec = appendSet(rec, math.MaxUint32, long, cells)
	rec = appendClear(rec, 2, counter.ParseID(""), 3, 4)
	rec = appendDelete(rec, 3, counter.IntID(0))
	rec = appendSession(rec, "producer", math.MaxUint64, 5)
	rec = appendNamespace(rec, []byte(`{}`))
	rec = appendDrop(rec, 9)
	rec = appendToken(rec, 15, token)
	var got []effect
	r := effectReader{b: rec}
	for {
		var f effect
		if !r.next(&f) {
			break
		}
		got = append(got, f)
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	want := []effect{
		{op: opSetOne, ns: 1, id: counter.IntID(math.MaxUint64), cells: []table.Cell{{Col: 7, Value: -1}}},
		{op: opSet, ns: math.MaxUint32, id: long, cells: cells},
		{op: opClear, ns: 2, id: counter.ParseID(""), cells: []table.Cell{{Col: 3}, {Col: 4}}},
		{op: opDelete, ns: 3, id: counter.IntID(0)},
		{op: opSession, producer: "producer", epoch: math.MaxUint64, seq: 5},
		{op: opNamespace, json: []byte(`{}`)},
		{op: opDrop, ns: 9},
		{op: opToken, partition: 15, token: token},
	}
	if len(got) != len(want) {
		t.Fatalf("%d effects, want %d", len(got), len(want))
	}
	for i := range want {
		got[i].raw = nil
		if len(got[i].cells) == 0 {
			got[i].cells = nil
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("effect %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	for cut := 1; cut < len(rec); cut++ { // a record cut anywhere is read to an effect's end or refused
		r := effectReader{b: rec[:cut]}
		var f effect
		for r.next(&f) {
		}
		if r.err != nil && !errors.Is(r.err, counter.ErrCorrupt) {
			t.Fatalf("cut at %d: %v", cut, r.err)
		}
	}
}

func FuzzEffects(f *testing.F) {
	f.Add(appendSetOne(nil, 1, counter.IntID(5), 0, 1))
	f.Add(appendSet(nil, 1, counter.ParseID("page"), []table.Cell{{Col: 1, Value: 2}}))
	f.Add(appendToken(nil, 3, tokenEntry{content: 4, unixMilli: 5}))
	f.Fuzz(func(t *testing.T, rec []byte) {
		r := effectReader{b: rec}
		var e effect
		var again []byte
		for r.next(&e) {
			switch e.op {
			case opSetOne:
				again = appendSetOne(again, e.ns, e.id, e.cells[0].Col, e.cells[0].Value)
			case opSet:
				again = appendSet(again, e.ns, e.id, e.cells)
			case opDelete:
				again = appendDelete(again, e.ns, e.id)
			case opToken:
				again = appendToken(again, e.partition, e.token)
			case opSession:
				again = appendSession(again, e.producer, e.epoch, e.seq)
			}
		}
		r = effectReader{b: again}
		for r.next(&e) {
		}
		if r.err != nil {
			t.Fatalf("what was read is written as %x, which does not read: %v", again, r.err)
		}
	})
}
