package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/tally-counter/tally/counter"
)

// The layout of segments and blocks; docs/format/journal.md tells it in words.
// All integers are little-endian.
//
//	segment header                     block header
//	 0  8  "tallyjnl"                   0  4  "TJB" 1
//	 8  4  format version, 1            4  4  payload bytes, 1 to blockBytesMax
//	12 16  database id                  8  8  start: position of the payload
//	28  8  start: first position       16  8  durable: position known to be on
//	36  4  CRC-32C of bytes 0 to 35           disk when this block was written
//	                                   24  4  CRC-32C of the payload
//	                                   28  4  CRC-32C of bytes 0 to 27
//
// The checksums of a block start from the checksum of the database id, so
// bytes that a client sent can never pass for a block, nor can a segment of
// another database.
const (
	segmentMagic       = "tallyjnl"
	segmentVersion     = 1
	segmentHeaderBytes = 40
	blockMagic         = "TJB\x01"
	blockHeaderBytes   = 32
	blockBytesMax      = 1 << 30

	segmentSuffix = ".tj"
	nextName      = "next.tmp" // the segment being prepared; it holds no records
	cleanName     = "clean"    // the clean-shutdown mark
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// salt is where the checksums of a database's blocks start from.
type salt uint32

func saltOf(id [16]byte) salt { return salt(crc32.Checksum(id[:], castagnoli)) }

func (s salt) sum(b []byte) uint32 { return crc32.Update(uint32(s), castagnoli, b) }

func segmentName(start Pos) string { return fmt.Sprintf("%016x%s", uint64(start), segmentSuffix) }

// segmentStart reads a segment's name; false when name is not one.
func segmentStart(name string) (Pos, bool) {
	hex, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(hex) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(hex, 16, 64)
	return Pos(n), err == nil && segmentName(Pos(n)) == name
}

func segmentHeader(id [16]byte, start Pos) []byte {
	h := make([]byte, segmentHeaderBytes)
	copy(h, segmentMagic)
	binary.LittleEndian.PutUint32(h[8:], segmentVersion)
	copy(h[12:], id[:])
	binary.LittleEndian.PutUint64(h[28:], uint64(start))
	binary.LittleEndian.PutUint32(h[36:], crc32.Checksum(h[:36], castagnoli))
	return h
}

// parseSegmentHeader returns the database id in h, the header of the segment
// that starts at start. Its error says what is wrong, without the place.
func parseSegmentHeader(h []byte, start Pos) (id [16]byte, err error) {
	switch {
	case !bytes.HasPrefix(h, []byte(segmentMagic)):
		return id, fmt.Errorf("this is not a journal segment: %w", counter.ErrCorrupt)
	case crc32.Checksum(h[:36], castagnoli) != binary.LittleEndian.Uint32(h[36:]):
		return id, fmt.Errorf("the checksum of the segment's header differs: %w", counter.ErrCorrupt)
	}
	if v := binary.LittleEndian.Uint32(h[8:]); v != segmentVersion {
		return id, fmt.Errorf("the segment has format %d and this version of Tally reads format %d; use the version that wrote it: %w", v, segmentVersion, counter.ErrInvalid)
	}
	if got := Pos(binary.LittleEndian.Uint64(h[28:])); got != start {
		return id, fmt.Errorf("the segment starts at position %d, its name says %d: %w", got, start, counter.ErrCorrupt)
	}
	copy(id[:], h[12:])
	return id, nil
}

// blockHeader is a block header as read or to be written.
type blockHeader struct {
	start   Pos
	durable Pos
	bytes   int // of payload
	sum     uint32
}

func (h blockHeader) end() Pos { return h.start + Pos(h.bytes) }

// sealBlock writes the header of the block whose payload is
// block[blockHeaderBytes:] into the space before it.
func sealBlock(s salt, block []byte, start, durable Pos) {
	payload := block[blockHeaderBytes:]
	copy(block, blockMagic)
	binary.LittleEndian.PutUint32(block[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint64(block[8:], uint64(start))
	binary.LittleEndian.PutUint64(block[16:], uint64(durable))
	binary.LittleEndian.PutUint32(block[24:], s.sum(payload))
	binary.LittleEndian.PutUint32(block[28:], s.sum(block[:28]))
}

// parseBlockHeader reads b, which has blockHeaderBytes; false when it is no
// header that this database wrote.
func parseBlockHeader(s salt, b []byte) (blockHeader, bool) {
	if string(b[:4]) != blockMagic || s.sum(b[:28]) != binary.LittleEndian.Uint32(b[28:]) {
		return blockHeader{}, false
	}
	h := blockHeader{
		start:   Pos(binary.LittleEndian.Uint64(b[8:])),
		durable: Pos(binary.LittleEndian.Uint64(b[16:])),
		bytes:   int(binary.LittleEndian.Uint32(b[4:])),
		sum:     binary.LittleEndian.Uint32(b[24:]),
	}
	return h, h.bytes > 0 && h.bytes <= blockBytesMax && h.durable <= h.start && h.end() > h.start
}

// nextRecord splits the first record off payload; false when payload does not
// begin with a whole one. framed is how many bytes it took.
func nextRecord(payload []byte) (rec []byte, framed int, ok bool) {
	n, w := binary.Uvarint(payload)
	if w <= 0 || n > RecordBytesMax || n > uint64(len(payload)-w) {
		return nil, 0, false
	}
	framed = w + int(n)
	return payload[w:framed], framed, true
}
