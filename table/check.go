package table

import (
	"bytes"
	"fmt"
	"math/bits"

	"github.com/tally-counter/tally/counter"
)

// CheckPage checks the bytes of a stored page: every invariant of the format, and
// that its keys are at or above name and below upper (nil: no bound). It returns
// the number of rows. Errors wrap counter.ErrCorrupt and name the page. No bytes
// make it panic or take memory beyond some copies of data.
func CheckPage(name, upper, data []byte) (rows int, err error) {
	r, err := checked(name, upper, data)
	if err != nil {
		return 0, err
	}
	defer r.free()
	return r.n, nil
}

// PageRows calls fn for each row of a stored page, in order, until fn fails. The
// key's text and cells are valid during the call. Errors are fn's and CheckPage's.
func PageRows(name, data []byte, fn func(k Key, cells []Cell) error) error {
	r, err := checked(name, nil, data)
	if err != nil {
		return err
	}
	defer r.free()
	var cells []Cell
	for i := range r.n {
		cells = cells[:0]
		for _, c := range r.cols {
			if c.has(i) {
				cells = append(cells, Cell{c.col, c.value[i]})
			}
		}
		if err := fn(r.key(i), cells); err != nil {
			return err
		}
	}
	return nil
}

// CheckChunk checks a chunk record. It returns the names of its pages in order
// and the number of rows they hold. Errors wrap counter.ErrCorrupt.
func CheckChunk(name, data []byte) (pages [][]byte, rows int64, err error) {
	var d directory
	if err := d.parse(name, data); err != nil {
		return nil, 0, err
	}
	for i, k := range d.seps {
		pages = append(pages, AppendName(nil, k))
		rows += int64(d.rows[i])
	}
	return pages, rows, nil
}

// checked unpacks a stored page that passes every check.
func checked(name, upper, data []byte) (*rows, error) {
	sep, err := ParseName(name)
	if err != nil {
		return nil, err
	}
	r := newRows(sep.IsText)
	if what := r.check(sep, upper, data); what != "" {
		r.free()
		return nil, fmt.Errorf("table: page %q: %s: %w (restore a backup)", name, what, counter.ErrCorrupt)
	}
	return r, nil
}

// check unpacks data into r, empty, and says what is wrong, if anything is. Each
// step may trust what the steps before have checked.
func (r *rows) check(sep Key, upper, data []byte) string {
	if len(data) < headerBits/8 {
		return "it is cut short"
	}
	b := page(append(make([]byte, 0, len(data)+padBytes), data...))[:len(data)+padBytes]
	h := b.header()
	switch {
	case h&(pageMarks|pageZero) != 0:
		return "bits of the header are set that must not be"
	case h.text() != r.text:
		return "its keys are not of the kind its name says"
	case h.rows() == 0:
		return "it has no rows"
	case h.cols() == 0 || h.cols() > columnsMax:
		return fmt.Sprintf("it has %d columns", h.cols())
	case h.bytes() != len(data):
		return fmt.Sprintf("it has %d bytes, its header says %d", len(data), h.bytes())
	case h.columnsAt() > h.length():
		return "its keys reach beyond its end"
	case get(b, h.length(), 8*len(data)-h.length()) != 0:
		return "bits behind its end are set"
	}
	if what := b.checkDescs(h); what != "" {
		return what
	}
	what := ""
	if r.text {
		what = b.checkTexts(h)
	} else {
		what = b.checkInts(h, sep.Num)
	}
	if what != "" {
		return what
	}
	r.unpack(b, sep)
	return r.checkRows(sep, upper)
}

// checkDescs checks the descriptors, and that the columns have the lanes they say.
func (b page) checkDescs(h header) string {
	at, last := h.columnsAt(), -1
	for i := range h.cols() {
		d := b.desc(i)
		if int(d.col()) <= last {
			return "columns do not ascend"
		}
		last = int(d.col())
		if d&descZero != 0 || d.form() >= formCount || d.sparse() && d.form() < sparseFormMin {
			return fmt.Sprintf("column %d: its form is unknown", last)
		}
		end := at + d.bits(h.rows())
		if end > h.length() {
			return fmt.Sprintf("column %d reaches beyond the end", last)
		}
		if what := b.checkColumn(d, at, h.rows()); what != "" {
			return fmt.Sprintf("column %d: %s", last, what)
		}
		at = end
	}
	if at != h.length() {
		return "its columns end before its end"
	}
	return ""
}

func (b page) checkColumn(d desc, at, rows int) string {
	w := &levelBits[d.form()]
	lanes := d.lanes(rows)
	if d.sparse() {
		if lanes == 0 {
			return "it lists no row"
		}
		last := -1
		for range lanes {
			row := int(get(b, at, rowBits))
			if row <= last || row >= rows {
				return "its list of rows does not ascend inside the page"
			}
			last = row
			at += rowBits
		}
	}
	levels := 1
	for k := 0; w[k] != 64; k++ {
		levels++
		escapes := memOf(b).countEscapes(at, w[k], lanes)
		if (k > 0 || d.sparse()) && b.hasZero(at, w[k], lanes) {
			return "a lane that must hold a value is zero"
		}
		at += lanes * w[k]
		if lanes = d.count(k + 1); lanes != escapes {
			return fmt.Sprintf("level %d has %d values for %d escapes", k+1, lanes, escapes)
		}
	}
	unused := ^desc(0) << (countShift + 8*uint(levels-1))
	if d.sparse() {
		unused &^= 0xff << laneShift
	}
	if d&unused != 0 {
		return "it counts lanes of a level it does not have"
	}
	return ""
}

func (b page) hasZero(at, w, n int) bool {
	for range n {
		if get(b, at, w) == 0 {
			return true
		}
		at += w
	}
	return false
}

// checkInts checks the unary part of integer keys, and that no key overflows.
func (b page) checkInts(h header, sep uint64) string {
	n, at := h.rows()+h.buckets(), 8*h.keysAt()
	ones := 0
	for p := 0; p < n; p += 64 {
		ones += bits.OnesCount64(word(b, at+p) & mask(min(64, n-p)))
	}
	if ones != h.rows() || h.buckets() == 0 || get(b, at+n-1, 1) != 0 {
		return "the buckets of its keys are damaged"
	}
	last := uint64(0)
	for p := n - 1; p >= 0; p-- {
		if get(b, at+p, 1) == 1 {
			last = uint64(p - (h.rows() - 1)) // its bucket
			break
		}
	}
	low := h.lowBits()
	off := get(b, at+n+(h.rows()-1)*low, low)
	if last > ^uint64(0)>>uint(low) || last<<uint(low)+off > ^uint64(0)-sep {
		return "its last key is beyond 64 bits"
	}
	return ""
}

// checkRows checks what the rows must be, whatever their coding.
func (r *rows) checkRows(sep Key, upper []byte) string {
	for i := range r.n {
		if i > 0 && r.key(i-1).Compare(r.key(i)) >= 0 {
			return "its keys do not ascend"
		}
		if r.isEmpty(i) {
			return fmt.Sprintf("row %s has no cells", r.key(i))
		}
	}
	if r.key(0).Compare(sep) < 0 {
		return "a key is below its name"
	}
	if upper != nil && bytes.Compare(AppendName(nil, r.key(r.n-1)), upper) >= 0 {
		return "a key is beyond the next page"
	}
	for _, c := range r.cols {
		if c.count() == 0 {
			return fmt.Sprintf("column %d has no cells", c.col)
		}
	}
	return ""
}
