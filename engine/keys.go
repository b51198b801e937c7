package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/tally-counter/tally/counter"
)

// Keys of the page store, by their first byte, in the order a checkpoint writes them:
//
//	d ns partition chunk   a chunk of a table's directory
//	m                      the manifest
//	n ns                   a namespace's definition
//	p ns partition page    a page
//	s producer             a session: epoch, sequence
//	t partition slice pos  tokens first seen in a slice of time
//
// Numbers are big-endian: ns 4 bytes, partition 1, slice and pos 8.
const (
	keyChunk     = 'd'
	keyManifest  = 'm'
	keyNamespace = 'n'
	keyPage      = 'p'
	keySession   = 's'
	keyToken     = 't'
)

func tablePrefix(kind byte, ns uint32, part int) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, ns)
	return append(b, byte(part))
}

func pagePrefix(ns uint32, part int) []byte { return tablePrefix(keyPage, ns, part) }

func namespaceKey(ns uint32) []byte { return binary.BigEndian.AppendUint32([]byte{keyNamespace}, ns) }

func sessionKey(producer string) []byte { return append([]byte{keySession}, producer...) }

func tokenSlicePrefix(part int, slice int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyToken, byte(part)}, uint64(slice))
}

// parseTableKey splits a chunk's or page's key.
func parseTableKey(key []byte, partitions int) (ns uint32, part int, name []byte, err error) {
	if len(key) < 6 || int(key[5]) >= partitions {
		return 0, 0, nil, fmt.Errorf("page store key %q is not of a table: %w", key, counter.ErrCorrupt)
	}
	return binary.BigEndian.Uint32(key[1:]), int(key[5]), key[6:], nil
}

const tokenEntryBytes = fingerprintBytes + 4 + 8

func appendTokenEntry(b []byte, t tokenEntry) []byte {
	b = append(b, t.fingerprint[:]...)
	b = binary.LittleEndian.AppendUint32(b, t.content)
	return binary.LittleEndian.AppendUint64(b, uint64(t.unixMilli))
}

func parseTokenEntry(b []byte) (t tokenEntry) {
	copy(t.fingerprint[:], b)
	t.content = binary.LittleEndian.Uint32(b[fingerprintBytes:])
	t.unixMilli = int64(binary.LittleEndian.Uint64(b[fingerprintBytes+4:]))
	return t
}

// pageLoader reads the pages of one table from the page store.
type pageLoader struct {
	engine *Engine
	prefix []byte
	key    []byte
}

func (l *pageLoader) LoadPage(name, dst []byte) ([]byte, error) {
	l.engine.counts.loads.Add(1)
	l.key = append(append(l.key[:0], l.prefix...), name...)
	return l.engine.store.Get(l.key, dst)
}
