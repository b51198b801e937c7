package crash

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// history holds what clients did to one counter between two restarts, and what
// they were told. Any goroutine may add to it.
type history struct {
	mu  sync.Mutex
	ops []porcupine.Operation
}

// input is what a client asked for.
type input struct {
	delta int64 // of an add; a read has 0
	begin bool  // not asked by a client: the value that the history begins with
}

// output is what it was told.
type output struct {
	value     int64
	duplicate bool // the add was not applied, for its token was known
	unknown   bool // the reply was lost: the add counts once or not at all
}

var epoch = time.Now()

// clock gives the times of histories: nanoseconds since this process began.
func clock() int64 { return int64(time.Since(epoch)) }

// note adds what client asked for at called and was told just now.
func (h *history) note(client int, called int64, in input, out output) {
	op := porcupine.Operation{ClientId: client, Input: in, Call: called, Output: out, Return: clock()}
	if out.unknown {
		op.Return = math.MaxInt64 // it may take effect at any later time, or never
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, op)
}

// start empties the history and lets it begin with value.
func (h *history) start(value int64) {
	h.ops = nil
	h.note(0, clock(), input{begin: true}, output{value: value})
}

// counter is the model of one counter: its state is an int64.
var counter = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, in, out any) (bool, any) {
		v, asked, told := state.(int64), in.(input), out.(output)
		switch {
		case asked.begin:
			return true, told.value
		case told.unknown:
			return true, v + asked.delta
		case told.duplicate:
			return told.value == v, v
		}
		return told.value == v+asked.delta, v + asked.delta
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
}

// checkMax bounds the search for an order of one history.
const checkMax = 30 * time.Second

// check reports a history that no order of its operations explains.
func (h *history) check(name string) error {
	switch porcupine.CheckOperationsTimeout(counter, h.ops, checkMax) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%s: no verdict on %d operations within %v", name, len(h.ops), checkMax)
	}
	slices.SortFunc(h.ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	text := fmt.Sprintf("%s: not linearizable; the last of %d operations:", name, len(h.ops))
	for _, op := range h.ops[max(0, len(h.ops)-40):] {
		text += fmt.Sprintf("\n  client %d, %d…%d: %s", op.ClientId, op.Call, op.Return, counter.DescribeOperation(op.Input, op.Output))
	}
	return fmt.Errorf("%s", text)
}
