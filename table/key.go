package table

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"unsafe"

	"github.com/tally-counter/tally/counter"
)

// Key names a row: an integer or a text of at most counter.IDBytesMax bytes.
// Integers come before texts. Text is read during a call only, never kept.
type Key struct {
	Num    uint64
	Text   string
	IsText bool
}

// Column numbers a counter of a namespace, 0..ColumnMax.
type Column uint16

// ColumnMax is the highest column number.
const ColumnMax Column = 4095

// Cell is one present counter of a row.
type Cell struct {
	Col   Column
	Value int64
}

// Compare orders keys: -1, 0 or 1.
func (k Key) Compare(o Key) int {
	switch {
	case k.IsText != o.IsText:
		if o.IsText {
			return -1
		}
		return 1
	case k.IsText:
		return strings.Compare(k.Text, o.Text)
	case k.Num < o.Num:
		return -1
	case k.Num > o.Num:
		return 1
	}
	return 0
}

func (k Key) check() error {
	if len(k.Text) > counter.IDBytesMax {
		return fmt.Errorf("table: the id has %d bytes, the limit is %d: %w", len(k.Text), counter.IDBytesMax, counter.ErrInvalid)
	}
	return nil
}

// A separator is the lowest key that a page or chunk may hold. Written, as the
// name of the page or chunk in the page store, it is 'i' and eight bytes
// big-endian, or 's' and the text; names sort as the keys do.
const (
	intMark  = 'i'
	textMark = 's'
)

// AppendName appends the written form of the separator k.
func AppendName(dst []byte, k Key) []byte {
	if k.IsText {
		return append(append(dst, textMark), k.Text...)
	}
	return binary.BigEndian.AppendUint64(append(dst, intMark), k.Num)
}

// ParseName reads the written form of a separator. The Key keeps name: it is
// valid as long as name is not changed. Errors wrap counter.ErrCorrupt.
func ParseName(name []byte) (Key, error) {
	switch {
	case len(name) == 9 && name[0] == intMark:
		return Key{Num: binary.BigEndian.Uint64(name[1:])}, nil
	case len(name) >= 1 && len(name) <= counter.IDBytesMax+1 && name[0] == textMark:
		return Key{Text: view(name[1:]), IsText: true}, nil
	}
	return Key{}, fmt.Errorf("table: %.20q… is not the name of a page: %w", name, counter.ErrCorrupt)
}

// view is b as a string without a copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// divide returns the shortest separator that is above l and at most r, l < r:
// the integer with the most trailing zeros, the text with the fewest bytes.
func divide(l, r Key) Key {
	if r.IsText {
		n := 0
		for n < len(l.Text) && l.Text[n] == r.Text[n] {
			n++
		}
		return Key{Text: r.Text[:n+1], IsText: true}
	}
	top := bits.Len64(l.Num^r.Num) - 1 // r has a one here, l a zero
	return Key{Num: r.Num &^ mask(top)}
}

// lowest is the separator of the first page of k's tree.
func (k Key) lowest() Key { return Key{IsText: k.IsText} }

// clone returns a key that shares no memory with k's text.
func (k Key) clone() Key {
	k.Text = strings.Clone(k.Text)
	return k
}

func (k Key) String() string {
	if k.IsText {
		return fmt.Sprintf("%.40q", k.Text)
	}
	return fmt.Sprint(k.Num)
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
