package journal

import (
	"fmt"

	"github.com/tally-counter/tally/counter"
)

// recovered is what the directory of a journal holds.
type recovered struct {
	segs  []segment
	last  scan // of the last segment
	clean bool // a clean-shutdown mark is there
}

// wayOut ends every report of damage.
const wayOut = "records before that position are safe: restore the file from a copy, or drop what follows with `tally verify --cut-journal`"

// damage is a report of acknowledged bytes that are damaged or missing from
// position pos on.
func damage(p place, pos Pos, what string) error {
	return fmt.Errorf("journal: %s, position %d: %s: %w (%s)", p, pos, what, counter.ErrCorrupt, wayOut)
}

// readAll reads the journal in dir from position from on, and tells a torn
// tail from damage: a torn tail is what nothing proves to have been durable.
// Such proof is a later block or segment, the clean-shutdown mark, and from
// itself.
func readAll(fs FS, dir string, from Pos, replay func(end Pos, rec []byte) error) (r recovered, err error) {
	if r.segs, r.clean, err = listSegments(fs, dir); err != nil {
		return r, err
	}
	var closedAt Pos
	var closedID [16]byte
	if r.clean {
		if closedAt, closedID, err = readClean(fs, dir); err != nil {
			return r, err
		}
	}
	if len(r.segs) == 0 {
		if proof := max(from, closedAt); proof > 0 {
			return r, damage(place{segmentName(0), 0}, 0, fmt.Sprintf("the directory holds no segment, but everything before position %d was on disk", proof))
		}
		return r, nil
	}
	first := 0
	for i, seg := range r.segs {
		if seg.start <= from {
			first = i
		}
	}
	if seg := r.segs[first]; seg.start > from {
		return r, damage(place{seg.name, 0}, from, fmt.Sprintf("the journal begins at position %d, but records from position %d on are needed: a segment is missing", seg.start, from))
	}
	fn := func(start, end Pos, rec []byte) error {
		switch {
		case end <= from:
			return nil
		case start < from:
			return fmt.Errorf("position %d, where replay is to start, is inside the record from %d to %d: %w", from, start, end, counter.ErrCorrupt)
		}
		return replay(end, rec)
	}
	var id [16]byte
	for i := first; i < len(r.segs); i++ {
		seg := r.segs[i]
		s, err := scanSegment(fs, dir, seg, posMax, fn)
		if err != nil {
			return r, err
		}
		if i == first {
			id = s.id
		}
		if s.id != id {
			return r, damage(place{seg.name, 12}, seg.start, "the segment belongs to another database")
		}
		r.last = s
		proof := max(s.claim, from)
		if i+1 < len(r.segs) {
			proof = r.segs[i+1].start
			if s.end > proof {
				return r, damage(place{r.segs[i+1].name, 0}, proof, fmt.Sprintf("the segment starts before position %d, where the one before it ends", s.end))
			}
		} else if closedID == id {
			proof = max(proof, closedAt)
		}
		if s.end < proof {
			return r, damage(place{seg.name, s.off}, s.end, s.missing(proof))
		}
	}
	return r, nil
}

// missing says what is wrong at the end of s when everything before proof was
// on disk.
func (s scan) missing(proof Pos) string {
	why := s.why
	if why == "" {
		why = "the segment ends here"
	}
	return fmt.Sprintf("%s, but everything before position %d was on disk", why, proof)
}
