package journal

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/tally-counter/tally/counter"
)

// segment is one file of the journal.
type segment struct {
	start Pos
	name  string // base name
}

// listSegments returns the segments in dir in order, and whether a
// clean-shutdown mark is there.
func listSegments(fs FS, dir string) (segs []segment, clean bool, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, false, fmt.Errorf("journal: directory %s cannot be read: %w (%v)", dir, counter.ErrUnavailable, err)
	}
	for _, name := range names {
		if start, ok := segmentStart(name); ok {
			segs = append(segs, segment{start, name})
		}
		clean = clean || name == cleanName
	}
	slices.SortFunc(segs, func(a, b segment) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	return segs, clean, nil
}

// place names a byte of the journal in errors and reports.
type place struct {
	file string
	off  int64
}

func (p place) String() string { return fmt.Sprintf("segment %s, byte %d", p.file, p.off) }

// scan is what reading one segment found: its good blocks end at byte off and
// position end. When why is not empty something that is no good block follows.
type scan struct {
	id      [16]byte
	off     int64
	end     Pos
	records int64
	blocks  int64

	proven    Pos   // highest position that a block claims was on disk before it
	provenOff int64 // byte of the first block that no later one proves

	limited bool // the next block ends behind the limit

	why   string // what is wrong with the bytes at off
	junk  int64  // bytes from off to the last that is not zero
	claim Pos    // highest durable position that a header behind off claims
}

const posMax = Pos(1<<64 - 1)

// scanSegment reads seg and calls fn for each record in it with the positions
// before and after it; rec is valid during the call. Marks are not records. It
// stops before the first block that ends behind limit. Damage at the end is
// described in the scan, not returned: only the caller knows what follows.
// Errors are those of the header, of reading and of fn.
func scanSegment(fs FS, dir string, seg segment, limit Pos, fn func(start, end Pos, rec []byte) error) (s scan, err error) {
	f, err := fs.OpenRead(filepath.Join(dir, seg.name))
	if err != nil {
		return s, fmt.Errorf("journal: segment %s cannot be opened: %w (%v)", seg.name, counter.ErrUnavailable, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return s, readError(place{seg.name, 0}, err)
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, size), int(min(256<<10, size)))

	head := make([]byte, segmentHeaderBytes)
	if size < segmentHeaderBytes {
		return s, fmt.Errorf("journal: %s: the file has %d bytes, too few for a segment's header: %w", place{seg.name, 0}, size, counter.ErrCorrupt)
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return s, readError(place{seg.name, 0}, err)
	}
	if s.id, err = parseSegmentHeader(head, seg.start); err != nil {
		return s, fmt.Errorf("journal: %s: %w", place{seg.name, 0}, err)
	}
	s.off, s.end = segmentHeaderBytes, seg.start
	s.proven, s.provenOff = seg.start, s.off

	salt := saltOf(s.id)
	ends := []blockEnd{{s.off, s.end}}
	var payload []byte
	head = make([]byte, blockHeaderBytes)
	for {
		if size-s.off < blockHeaderBytes {
			s.why = "the block's header is cut short"
			break
		}
		if _, err := io.ReadFull(r, head); err != nil {
			return s, readError(place{seg.name, s.off}, err)
		}
		h, ok := parseBlockHeader(salt, head)
		if s.why = headerFault(h, ok, s.end, size-s.off); s.why != "" {
			break
		}
		payload = slices.Grow(payload[:0], h.bytes)[:h.bytes]
		if _, err := io.ReadFull(r, payload); err != nil {
			return s, readError(place{seg.name, s.off}, err)
		}
		if h.end() > limit {
			s.limited = true
			return s, nil
		}
		if salt.sum(payload) != h.sum {
			s.why = "the block's checksum differs"
			break
		}
		n, err := eachRecord(payload, h.start, fn)
		if err != nil {
			return s, fmt.Errorf("journal: %s: %w", place{seg.name, s.off}, err)
		}
		s.records += n
		s.blocks++
		s.off += blockHeaderBytes + int64(h.bytes)
		s.end = h.end()
		ends = append(ends, blockEnd{s.off, s.end})
		if h.durable > s.proven {
			s.proven = h.durable
		}
		for len(ends) > 1 && ends[1].pos <= s.proven {
			ends = ends[1:]
		}
		s.provenOff = ends[0].off
	}
	return s, s.inspectTail(f, size, seg.name)
}

// blockEnd is where a block ends in the file and in the stream.
type blockEnd struct {
	off int64
	pos Pos
}

// headerFault says why h cannot be the header of the block at position want
// with left bytes of the file from its header on, or nothing.
func headerFault(h blockHeader, ok bool, want Pos, left int64) string {
	switch {
	case !ok:
		return "the block's header is damaged"
	case h.start != want:
		return fmt.Sprintf("the block starts at position %d instead of %d", h.start, want)
	case int64(h.bytes) > left-blockHeaderBytes:
		return fmt.Sprintf("the block has %d bytes and the file only %d", h.bytes, left-blockHeaderBytes)
	}
	return ""
}

func eachRecord(payload []byte, pos Pos, fn func(start, end Pos, rec []byte) error) (n int64, err error) {
	for len(payload) > 0 {
		rec, framed, ok := nextRecord(payload)
		if !ok {
			return n, fmt.Errorf("a record at position %d is malformed inside a block with a good checksum: %w", pos, counter.ErrCorrupt)
		}
		end := pos + Pos(framed)
		if len(rec) > 0 {
			n++
			if err := fn(pos, end, rec); err != nil {
				return n, err
			}
		}
		payload, pos = payload[framed:], end
	}
	return n, nil
}

// inspectTail looks at what lies behind the last good block: how much of it is
// not zero, and what the headers in it claim to have been durable.
func (s *scan) inspectTail(f File, size int64, name string) error {
	const step = 1 << 20
	salt := saltOf(s.id)
	buf := make([]byte, min(step, size-s.off)+blockHeaderBytes-1)
	for off := s.off; off < size; off += step {
		// Chunks overlap, so that no header is missed on their border.
		chunk := buf[:min(int64(len(buf)), size-off)]
		if _, err := io.ReadFull(io.NewSectionReader(f, off, int64(len(chunk))), chunk); err != nil {
			return readError(place{name, off}, err)
		}
		used := len(bytes.TrimRight(chunk, "\x00"))
		if used == 0 {
			continue
		}
		s.junk = max(s.junk, off+int64(used)-s.off)
		for i := 0; ; i++ {
			j := bytes.Index(chunk[i:], []byte(blockMagic))
			if j < 0 || len(chunk)-(i+j) < blockHeaderBytes {
				break
			}
			i += j
			if h, ok := parseBlockHeader(salt, chunk[i:]); ok && h.start >= s.end {
				s.claim = max(s.claim, h.durable)
			}
		}
	}
	if s.junk == 0 {
		s.why = ""
	}
	return nil
}

func readError(p place, err error) error {
	return fmt.Errorf("journal: %s: reading failed: %w (%v); check the disk", p, counter.ErrUnavailable, err)
}
