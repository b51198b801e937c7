// Package counter holds the words of the domain: keys, counters, deltas,
// outcomes, limits and the kinds of error. Every other package speaks in them;
// this one imports the standard library only and keeps no state, so any
// goroutine may call it.
package counter

import (
	"fmt"
	"math"
)

// Limits that every front end and the engine hold to. Larger input is refused
// with ErrInvalid, never cut.
const (
	IDBytesMax        = 512   // bytes in a string id
	NamespaceBytesMax = 255   // bytes in a namespace's name
	NameBytesMax      = 64    // bytes in a counter's name
	CountersMax       = 1024  // counters in one namespace
	NamespacesMax     = 4096  // namespaces in one data directory
	TokenBytesMax     = 64    // bytes in a token
	ProducerBytesMax  = 128   // bytes in the name of a session's producer
	DeltasMax         = 1024  // deltas of one add
	BatchMax          = 65536 // adds, or objects read, in one batch
)

// DefaultNamespace holds the objects whose key names no namespace.
const DefaultNamespace = "default"

// ValueCounter is the counter that commands without a counter's name mean:
// INCR page adds to counter "value" of object "page".
const ValueCounter = "value"

// Kind says what a counter counts.
type Kind uint8

// Total is a sum of deltas: a signed 64-bit integer.
const Total Kind = 0

func (k Kind) String() string {
	if k == Total {
		return "total"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Policy says what becomes of an add that would leave a counter's bounds.
type Policy uint8

const (
	Reject Policy = iota // the add changes nothing and says how it stands
	Clamp                // the counter stops at the bound
)

func (p Policy) String() string {
	switch p {
	case Reject:
		return "reject"
	case Clamp:
		return "clamp"
	}
	return fmt.Sprintf("policy(%d)", uint8(p))
}

// Schema declares one counter of a namespace.
type Schema struct {
	Name   string
	Kind   Kind
	Min    int64 // lowest value; math.MinInt64 is no bound
	Max    int64 // highest value; math.MaxInt64 is no bound
	Policy Policy
}

// Undeclared returns the schema that a counter has when it appears by use: a
// total without bounds.
func Undeclared(name string) Schema {
	return Schema{Name: name, Min: math.MinInt64, Max: math.MaxInt64}
}

// Bounded tells whether s narrows the 64-bit range.
func (s Schema) Bounded() bool { return s.Min != math.MinInt64 || s.Max != math.MaxInt64 }

// Validate reports what is wrong with s, as ErrInvalid.
func (s Schema) Validate() error {
	if err := CheckName(s.Name); err != nil {
		return err
	}
	if s.Kind != Total {
		return fmt.Errorf("counter %q: %s is not a kind this version knows: %w", s.Name, s.Kind, ErrInvalid)
	}
	if s.Min > s.Max {
		return fmt.Errorf("counter %q: min %d is above max %d: %w", s.Name, s.Min, s.Max, ErrInvalid)
	}
	if s.Policy > Clamp {
		return fmt.Errorf("counter %q: policy %d is unknown; use reject or clamp: %w", s.Name, s.Policy, ErrInvalid)
	}
	return nil
}

// CheckName reports whether name can name a counter: 1 to NameBytesMax bytes.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("a counter's name is empty; give 1 to %d bytes: %w", NameBytesMax, ErrInvalid)
	}
	if len(name) > NameBytesMax {
		return fmt.Errorf("a counter's name has %d bytes, the limit is %d: %w", len(name), NameBytesMax, ErrInvalid)
	}
	return nil
}

// Delta is a signed change to one counter of an object.
type Delta struct {
	Counter string
	By      int64
}

// Value is one counter of an object as read.
type Value struct {
	Counter string
	Value   int64
}

// Outcome says what became of an add.
type Outcome uint8

const (
	Applied   Outcome = iota // it counts, once
	Duplicate                // its token or sequence number was seen before; nothing changed
	Rejected                 // a bound forbade it; nothing changed
	Failed                   // it was refused with an error; nothing changed
)

func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case Duplicate:
		return "duplicate"
	case Rejected:
		return "rejected"
	case Failed:
		return "failed"
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Sum returns a + b, or ErrOverflow when the signed 64-bit range cannot hold it.
func Sum(a, b int64) (int64, error) {
	s := a + b
	if (s > a) != (b > 0) && b != 0 {
		return a, ErrOverflow
	}
	return s, nil
}
