package table

import (
	"bytes"
	"encoding/binary"

	"github.com/tally-counter/tally/counter"
)

// textChecker reads a block of text keys that may be anything.
type textChecker struct {
	block []byte
	at    int
	bad   bool
}

// take returns the next n bytes.
func (c *textChecker) take(n int) []byte {
	if c.bad || n > len(c.block)-c.at {
		c.bad = true
		return make([]byte, min(n, 4*rowsMax))
	}
	c.at += n
	return c.block[c.at-n : c.at]
}

// length reads a length, written as short as it can be.
func (c *textChecker) length() int {
	n := int(c.take(1)[0])
	if n >= 0x80 {
		high := int(c.take(1)[0])
		n = n&0x7f | high<<7
		c.bad = c.bad || high == 0
	}
	if n > counter.IDBytesMax {
		c.bad = true
		return 0
	}
	return n
}

func (c *textChecker) entry() (shared, own int) {
	e := int(c.take(1)[0])
	shared, own = e&15, e>>4
	if shared == nibbleMax {
		shared += c.length()
	}
	if own == nibbleMax {
		own += c.length()
	}
	return shared, own
}

// checkTexts checks the block of text keys: that it is what appendTexts and the
// splices make of its keys.
func (b page) checkTexts(h header) string {
	at, n := h.keysAt(), h.rows()
	c := textChecker{block: b[at : at+h.keyBytes()]}
	prefix := c.length()
	c.take(prefix)
	runs := int(c.take(1)[0])
	firsts := c.take(runs)
	places := c.take(2 * runs)
	if c.bad || runs == 0 || firsts[0] != 0 {
		return "the list of the runs of its keys is damaged"
	}
	var first, last []byte
	run := 0
	for row := range n {
		start := run < runs && int(firsts[run]) == row
		if start {
			if int(binary.LittleEndian.Uint16(places[2*run:])) != c.at {
				return "a run of its keys does not begin where its list says"
			}
			run++
		} else if row-int(firsts[run-1]) >= runRowsMax {
			return "a run of its keys is too long"
		}
		shared, own := c.entry()
		text := c.take(own)
		switch {
		case c.bad || shared > len(last) || prefix+shared+own > counter.IDBytesMax:
			return "the block of its keys is damaged"
		case start && shared != 0:
			return "the first key of a run is not whole"
		case row == 0:
			first = text
		case bytes.Compare(last[shared:], text) >= 0:
			return "its keys do not ascend"
		case !start && shared < len(last) && last[shared] == text[0]:
			return "a key shares more with the one before than it says"
		}
		last = append(last[:shared], text...)
	}
	switch {
	case run != runs:
		return "the list of the runs of its keys is damaged"
	case c.at != len(c.block):
		return "bytes follow its keys"
	case n == 1 && len(first) > 0 || n > 1 && len(first) > 0 && first[0] == last[0]:
		return "its keys share more than their prefix"
	}
	return ""
}
