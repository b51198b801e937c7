package transfer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tally-counter/tally/counter"
)

// memory is a target and source in memory, with the promises of the real ones.
// trouble, when set, is asked before each batch and may lose it or its answer.
type memory struct {
	counts   map[counter.Key]map[string]int64
	tokens   map[string]bool
	epochs   map[string]uint64
	seqs     map[string]uint64
	trouble  func() (before, after error)
	rejectAt func(*Item) error
}

func newMemory() *memory {
	return &memory{counts: map[counter.Key]map[string]int64{}, tokens: map[string]bool{}, epochs: map[string]uint64{}, seqs: map[string]uint64{}}
}

func (m *memory) OpenSession(_ context.Context, producer string) (epoch, lastSeq uint64, err error) {
	m.epochs[producer]++
	return m.epochs[producer], m.seqs[producer], nil
}

func (m *memory) Send(_ context.Context, batches []*Batch) (done int, err error) {
	for _, b := range batches {
		var after error
		if m.trouble != nil {
			var before error
			if before, after = m.trouble(); before != nil {
				return done, before
			}
		}
		if err := m.apply(b); err != nil {
			return done, err
		}
		if after != nil {
			return done, after
		}
		done++
	}
	return done, nil
}

func (m *memory) apply(b *Batch) error {
	b.Applied, b.Duplicate, b.Refused = 0, 0, nil
	repeated := false
	if b.Producer != "" {
		switch last := m.seqs[b.Producer]; {
		case b.Epoch != m.epochs[b.Producer]:
			return fmt.Errorf("epoch %d: %w", b.Epoch, counter.ErrFenced)
		case b.Seq > last+1:
			return fmt.Errorf("batch %d after %d: %w", b.Seq, last, counter.ErrGap)
		default:
			repeated = b.Seq <= last
			m.seqs[b.Producer] = max(last, b.Seq)
		}
	}
	for i := range b.Items {
		it := &b.Items[i]
		token := it.Key.String() + " " + it.Token
		if m.rejectAt != nil {
			if err := m.rejectAt(it); err != nil {
				b.Refused = append(b.Refused, Refusal{i, err})
				continue
			}
		}
		if repeated || it.Token != "" && m.tokens[token] {
			b.Duplicate++
			continue
		}
		b.Applied++
		m.tokens[token] = true
		object := m.counts[it.Key]
		if object == nil {
			object = map[string]int64{}
			m.counts[it.Key] = object
		}
		for _, d := range it.Deltas {
			if b.Kind == Values {
				object[d.Counter] = d.By
			} else {
				object[d.Counter] += d.By
			}
		}
	}
	return nil
}

// seeded returns a source of randomness whose seed is in the test's output.
func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}
