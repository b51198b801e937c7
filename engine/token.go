package engine

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/table"
)

// A token is remembered as a 96-bit fingerprint of (namespace, object, token)
// with a 32-bit hash of what it added and the time it was first seen. At a
// million tokens a second over ten minutes, 96 bits confuse two tokens about once
// in 400,000 years (6e8 stored, 8.6e10 new a day, 2^-96 each).
const (
	fingerprintBytes = 12
	tokenSkew        = time.Minute // how far a token's own time may run ahead of our clock
	tokenSlices      = 8           // of the retention: what is kept is at most 1/8 too old
	tokenBytes       = 32          // of memory, about, for each
)

type tokenEntry struct {
	fingerprint [fingerprintBytes]byte
	content     uint32
	unixMilli   int64
}

// tokenSlice holds the tokens first seen in one span of time: entries in order
// of arrival, and an open-addressing index into them (position+1; 0 is free).
type tokenSlice struct {
	number  int64 // unix ms / span
	entries []tokenEntry
	index   []uint32
	saved   int // entries that the page store holds
}

// tokenSet is the tokens of a partition, guarded by its lock.
type tokenSet struct {
	spanMilli int64
	slices    []*tokenSlice // by rising number, at most tokenSlices+3
	count     int
	stale     []int64 // slices that are gone and that the page store may hold
}

func slotOf(fp *[fingerprintBytes]byte, n int) int {
	return int(binary.LittleEndian.Uint64(fp[:8])) & (n - 1)
}

func (s *tokenSlice) find(fp *[fingerprintBytes]byte) *tokenEntry {
	if len(s.index) == 0 {
		return nil
	}
	for i := slotOf(fp, len(s.index)); ; i = (i + 1) & (len(s.index) - 1) {
		at := s.index[i]
		if at == 0 {
			return nil
		}
		if e := &s.entries[at-1]; e.fingerprint == *fp {
			return e
		}
	}
}

func (s *tokenSlice) add(e tokenEntry) {
	s.entries = append(s.entries, e)
	if len(s.entries)*4 > len(s.index)*3 {
		s.index = make([]uint32, max(16, 2*len(s.index)))
		for i := range s.entries {
			s.put(i)
		}
		return
	}
	s.put(len(s.entries) - 1)
}

func (s *tokenSlice) put(entry int) {
	i := slotOf(&s.entries[entry].fingerprint, len(s.index))
	for s.index[i] != 0 {
		i = (i + 1) & (len(s.index) - 1)
	}
	s.index[i] = uint32(entry + 1)
}

func (t *tokenSet) find(fp *[fingerprintBytes]byte) *tokenEntry {
	for i := len(t.slices) - 1; i >= 0; i-- {
		if e := t.slices[i].find(fp); e != nil {
			return e
		}
	}
	return nil
}

// add remembers a new token.
func (t *tokenSet) add(e tokenEntry) {
	number := e.unixMilli / t.spanMilli
	i := len(t.slices)
	for i > 0 && t.slices[i-1].number > number {
		i--
	}
	if i == 0 || t.slices[i-1].number != number {
		t.slices = append(t.slices, nil)
		copy(t.slices[i+1:], t.slices[i:])
		t.slices[i] = &tokenSlice{number: number}
		i++
	}
	t.slices[i-1].add(e)
	t.count++
}

// expire drops the slices that outlived the retention and says how many tokens went.
func (t *tokenSet) expire(nowMilli int64) int {
	dropped := 0
	for len(t.slices) > 0 && t.slices[0].number < nowMilli/t.spanMilli-tokenSlices {
		dropped += len(t.slices[0].entries)
		t.stale = append(t.stale, t.slices[0].number)
		t.slices = t.slices[1:]
	}
	t.count -= dropped
	return dropped
}

// tokenTime reads the time out of a token that is a UUID of version 7 in its
// text form (RFC 9562, section 5.7): 48 bits of unix milliseconds first.
func tokenTime(token string) (unixMilli int64, ok bool) {
	if len(token) != 36 || token[8] != '-' || token[13] != '-' || token[18] != '-' || token[23] != '-' || token[14] != '7' {
		return 0, false
	}
	var src [12]byte
	copy(src[:8], token[:8])
	copy(src[8:], token[9:13])
	var ms [8]byte
	if _, err := hex.Decode(ms[2:], src[:]); err != nil {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(ms[:])), true
}

// checkToken refuses tokens that are too long, or whose own time says that
// they can no longer, or not yet, be told from a repetition.
func (e *Engine) checkToken(token string, nowMilli int64) (unixMilli int64, err error) {
	if len(token) > counter.TokenBytesMax {
		return 0, fmt.Errorf("the token has %d bytes, the limit is %d: %w", len(token), counter.TokenBytesMax, counter.ErrInvalid)
	}
	ms, ok := tokenTime(token)
	if !ok {
		return nowMilli, nil
	}
	if age := nowMilli - ms; age > e.opts.TokenRetention.Milliseconds() {
		return 0, fmt.Errorf("the token was made %s ago and the retention is %s, so it can't be told whether it was applied; nothing was changed: %w",
			(time.Duration(age) * time.Millisecond).Round(time.Second), e.opts.TokenRetention, counter.ErrTooOld)
	} else if -age > tokenSkew.Milliseconds() {
		return 0, fmt.Errorf("the token's time is %s ahead of the server's clock; set the clocks right: %w",
			(time.Duration(-age) * time.Millisecond).Round(time.Second), counter.ErrInvalid)
	}
	return max(ms, nowMilli), nil
}

// fingerprint names a token of an object.
func fingerprint(scratch []byte, ns uint32, k table.Key, token string) (fp [fingerprintBytes]byte, _ []byte) {
	b := binary.LittleEndian.AppendUint32(scratch[:0], ns)
	if k.IsText {
		b = binary.AppendUvarint(b, uint64(len(k.Text))+1)
		b = append(b, k.Text...)
	} else {
		b = append(b, 0)
		b = binary.LittleEndian.AppendUint64(b, k.Num)
	}
	b = append(b, token...)
	h := xxh3.Hash128(b)
	binary.LittleEndian.PutUint64(fp[:8], h.Lo)
	binary.LittleEndian.PutUint32(fp[8:], uint32(h.Hi))
	return fp, b
}

// contentHash tells apart two adds under one token.
func contentHash(scratch []byte, deltas []counter.Delta) (uint32, []byte) {
	b := scratch[:0]
	for _, d := range deltas {
		b = binary.AppendUvarint(b, uint64(len(d.Counter)))
		b = append(b, d.Counter...)
		b = binary.LittleEndian.AppendUint64(b, uint64(d.By))
	}
	return uint32(xxh3.Hash(b)), b
}
