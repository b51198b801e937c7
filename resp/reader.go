package resp

import (
	"bytes"
	"fmt"
)

// limits bound what one request may ask for. Nothing is allocated ahead of the
// bytes that arrive, so a large declared length costs nothing.
type limits struct {
	request int // bytes of one request
	args    int // arguments of one request
	bulk    int // bytes of one argument
	inline  int // bytes of an inline request's line
}

// unauthenticated is what a client may send before it has authenticated. The
// figures are Redis' own.
var unauthenticated = limits{request: 1 << 20, args: 10, bulk: 16 << 10, inline: 16 << 10}

// protocolError ends a connection: where its bytes stop making sense, the next
// request cannot be found.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// resumeBytes is how much of an unfinished request is parsed anew when more of
// it arrives; beyond it the reader goes on where it stopped, so that a large
// request in small pieces does not cost the square of its size.
const resumeBytes = 4 << 10

// span is where an argument stands in its request.
type span struct{ from, to int32 }

// reader takes requests from the start of a buffer: arrays of bulk strings, or
// inline lines. It keeps state only within a request that is still incomplete.
//
// Source: the Redis serialization protocol specification.
type reader struct {
	limits *limits
	argc   int // arguments the request has, once pos > 0
	pos    int // bytes of the request that are understood
	spans  []span
	words  *words
}

// words is the memory of one request's arguments, shared by the readers of a
// goroutine.
type words struct {
	args  [][]byte
	spans []span
}

// keptMax is how many entries of reused memory are kept from request to request.
const keptMax = 8 << 10

// next returns the arguments of the request at the start of in and how many
// bytes it has. No bytes: the request is incomplete; call again with more of it.
// Bytes but no arguments: an empty request, to be skipped. The arguments are
// valid until the next call and as long as in is.
func (r *reader) next(in []byte) (args [][]byte, n int, err error) {
	if r.pos == 0 {
		if len(in) == 0 {
			return nil, 0, nil
		}
		if in[0] != '*' {
			return r.inline(in)
		}
		argc, at := number(in, 1)
		if at == 0 {
			return nil, 0, nil
		}
		if at < 0 || argc > r.limits.args {
			if r.limits == &unauthenticated && at > 0 {
				return nil, 0, protocolError("unauthenticated multibulk length")
			}
			return nil, 0, protocolError("invalid multibulk length")
		}
		if argc <= 0 {
			return nil, at, nil
		}
		r.argc, r.pos = argc, at
		r.spans, r.words.spans = r.words.spans[:0], nil
	}
	if err := r.bulks(in); err != nil {
		return nil, 0, err
	}
	if len(r.spans) < r.argc {
		if r.pos < resumeBytes {
			r.release()
		}
		return nil, 0, nil
	}
	args = r.words.args[:0]
	for _, s := range r.spans {
		args = append(args, in[s.from:s.to:s.to])
	}
	n = r.pos
	if r.words.args = args; r.argc > keptMax {
		r.words.args = nil
	}
	r.release()
	return args, n, nil
}

// release ends a request and gives its memory to the next.
func (r *reader) release() {
	if cap(r.spans) <= keptMax {
		r.words.spans = r.spans
	}
	r.argc, r.pos, r.spans = 0, 0, nil
}

// bulks reads arguments until there are argc of them or in ends.
func (r *reader) bulks(in []byte) error {
	for len(r.spans) < r.argc && r.pos < len(in) {
		if in[r.pos] != '$' {
			return protocolError(fmt.Sprintf("expected '$', got %q", in[r.pos]))
		}
		size, from := number(in, r.pos+1)
		if from == 0 {
			return nil
		}
		if from < 0 || size < 0 || size > r.limits.bulk {
			if r.limits == &unauthenticated && from > 0 && size > 0 {
				return protocolError("unauthenticated bulk length")
			}
			return protocolError("invalid bulk length")
		}
		to := from + size
		if to+2 > r.limits.request {
			return protocolError(fmt.Sprintf("the request has more than %d bytes; split it", r.limits.request))
		}
		if to+2 > len(in) {
			return nil
		}
		if in[to] != '\r' || in[to+1] != '\n' {
			return protocolError("expected a line end after the bytes of a bulk string")
		}
		r.spans = append(r.spans, span{int32(from), int32(to)})
		r.pos = to + 2
	}
	return nil
}

// number reads a decimal number and the line end after it, and returns where the
// next line begins: 0 when more bytes are needed, -1 when it is not a number.
func number(in []byte, at int) (n, next int) {
	negative := at < len(in) && in[at] == '-'
	if negative {
		at++
	}
	first := at
	for ; at < len(in); at++ {
		d := in[at] - '0'
		if d > 9 {
			break
		}
		if n = n*10 + int(d); at-first >= 12 {
			return 0, -1
		}
	}
	switch {
	case at == len(in):
		return 0, 0
	case in[at] != '\r' || at == first:
		return 0, -1
	case at+1 == len(in):
		return 0, 0
	case in[at+1] != '\n':
		return 0, -1
	}
	if negative {
		n = -n
	}
	return n, at + 2
}

// inline reads a request typed as a line: words, bare or quoted.
func (r *reader) inline(in []byte) ([][]byte, int, error) {
	end := bytes.IndexByte(in, '\n')
	if end > r.limits.inline || (end < 0 && len(in) > r.limits.inline) {
		return nil, 0, protocolError("too big inline request")
	}
	if end < 0 {
		return nil, 0, nil
	}
	args, ok := splitWords(r.words.args[:0], bytes.TrimSuffix(in[:end], []byte("\r")))
	if !ok {
		return nil, 0, protocolError("unbalanced quotes in request")
	}
	if len(args) > r.limits.args {
		return nil, 0, protocolError("invalid multibulk length")
	}
	r.words.args = args
	return args, end + 1, nil
}

// splitWords appends the words of a line: separated by blanks, "quoted" with
// escapes as in C and \xHH, or 'quoted' where only \' is an escape. It reports
// false for an open quote or a word that goes on behind a closed one.
func splitWords(words [][]byte, line []byte) ([][]byte, bool) {
	for i := 0; ; {
		for i < len(line) && blank(line[i]) {
			i++
		}
		if i == len(line) {
			return words, true
		}
		var word []byte
		if q := line[i]; q == '"' || q == '\'' {
			var ok bool
			if word, i, ok = quoted(line, i); !ok {
				return nil, false
			}
		} else {
			from := i
			for i < len(line) && !blank(line[i]) && line[i] != '"' && line[i] != '\'' {
				i++
			}
			word = line[from:i:i]
			for i < len(line) && !blank(line[i]) { // a quote inside a word joins it
				part, next, ok := quoted(line, i)
				if !ok {
					return nil, false
				}
				word, i = append(word, part...), next
			}
		}
		words = append(words, word)
	}
}

func blank(c byte) bool { return c == ' ' || (c >= '\t' && c <= '\r') || c == 0 }

// quoted reads the quoted string that begins at i and must end at a blank.
func quoted(line []byte, i int) (word []byte, next int, ok bool) {
	q := line[i]
	word = make([]byte, 0, 16)
	for i++; i < len(line); i++ {
		c := line[i]
		switch {
		case c == q:
			i++
			return word, i, i == len(line) || blank(line[i])
		case c == '\\' && i+1 < len(line) && q == '\'' && line[i+1] == '\'':
			i++
			word = append(word, '\'')
		case c == '\\' && i+1 < len(line) && q == '"':
			if high, low := hex(line, i+2), hex(line, i+3); line[i+1] == 'x' && high >= 0 && low >= 0 {
				word = append(word, byte(high<<4|low))
				i += 3
				continue
			}
			i++
			word = append(word, unescape(line[i]))
		default:
			word = append(word, c)
		}
	}
	return nil, 0, false
}

func hex(line []byte, i int) int {
	if i >= len(line) {
		return -1
	}
	switch c := line[i]; {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}
