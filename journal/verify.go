package journal

import (
	"errors"
	"fmt"

	"github.com/tally-counter/tally/counter"
)

// Report is what Verify found.
type Report struct {
	Segments  int       `json:"segments"`
	First     Pos       `json:"first"`      // first position kept
	End       Pos       `json:"end"`        // where the good records end, from the first segment on without a gap
	Records   int64     `json:"records"`    // good ones, marks not counted
	Blocks    int64     `json:"blocks"`     // good ones
	TornBytes int64     `json:"torn_bytes"` // at the end, never acknowledged; the next Open cuts them off
	Clean     bool      `json:"clean"`      // the journal was closed cleanly
	Problems  []Problem `json:"problems"`
}

// Problem is one place of damage.
type Problem struct {
	File string `json:"file"` // base name
	Byte int64  `json:"byte"`
	Pos  Pos    `json:"pos"` // what precedes it is good; the place to give Cut
	Text string `json:"text"`
}

func (p Problem) String() string {
	return fmt.Sprintf("segment %s, byte %d, position %d: %s", p.File, p.Byte, p.Pos, p.Text)
}

// Verify reads the whole journal in dir, which no process may have open, and
// changes nothing: every checksum, and that the segments join without a gap.
// from is the position that replay would start at; check, if not nil, is called
// for every record, and what it finds wrong is damage too. Damage is in the
// Report; the error is for a directory or file that cannot be read.
func Verify(fs FS, dir string, from Pos, check func(end Pos, rec []byte) error) (Report, error) {
	if fs == nil {
		fs = OS
	}
	if check == nil {
		check = func(Pos, []byte) error { return nil }
	}
	segs, clean, err := listSegments(fs, dir)
	r := Report{Segments: len(segs), Clean: clean}
	if err != nil {
		return r, err
	}
	proof := from // everything before it was on disk
	if clean {
		closedAt, _, err := readClean(fs, dir)
		switch {
		case errors.Is(err, counter.ErrCorrupt):
			r.add(place{cleanName, 0}, 0, err.Error())
		case err != nil:
			return r, err
		}
		proof = max(proof, closedAt)
	}
	if len(segs) == 0 {
		if proof > 0 {
			r.add(place{segmentName(0), 0}, 0, scan{why: "no segment is there"}.missing(proof))
		}
		return r, nil
	}
	r.First, r.End = segs[0].start, segs[0].start
	if from < r.First {
		r.add(place{segs[0].name, 0}, from, fmt.Sprintf("a segment is missing: the journal begins at position %d, records from position %d on are needed", r.First, from))
	}
	var id [16]byte
	joined := true
	for i, seg := range segs {
		s, err := scanSegment(fs, dir, seg, posMax, func(_, end Pos, rec []byte) error { return check(end, rec) })
		switch {
		case counter.KindOf(err) == counter.ErrUnavailable:
			return r, err
		case err != nil:
			r.add(place{seg.name, s.off}, max(seg.start, s.end), err.Error())
			joined = false
			continue
		}
		if i == 0 || id == [16]byte{} {
			id = s.id
		}
		r.Records += s.records
		r.Blocks += s.blocks
		if joined {
			r.End = s.end
		}
		last := i+1 == len(segs)
		known := max(s.claim, proof)
		if !last {
			known = segs[i+1].start
		}
		switch {
		case s.id != id:
			r.add(place{seg.name, 12}, seg.start, "the segment belongs to another database")
			joined = false
		case s.end < known:
			r.add(place{seg.name, s.off}, s.end, s.missing(known))
			joined = false
		case !last && s.end > known:
			r.add(place{segs[i+1].name, 0}, known, fmt.Sprintf("the segment starts before position %d, where the one before it ends", s.end))
			joined = false
		case !last && s.junk > 0:
			r.add(place{seg.name, s.off}, s.end, fmt.Sprintf("%d bytes follow the last block; they hold no records", s.junk))
		case last:
			r.TornBytes = s.junk
		}
	}
	return r, nil
}

func (r *Report) add(p place, pos Pos, text string) {
	r.Problems = append(r.Problems, Problem{p.file, p.off, pos, text})
}
