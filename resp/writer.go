package resp

import (
	"math"
	"strconv"
)

// writer appends replies in the protocol version of its connection. What RESP2
// lacks (maps, sets, booleans, verbatim strings) it writes as Redis does: flat
// arrays, integers, bulk strings.
//
// Source: the Redis serialization protocol specification, versions 2 and 3.
type writer struct {
	b     []byte
	resp3 bool
}

func (w *writer) line(kind byte, s string) {
	w.b = append(w.b, kind)
	w.b = append(w.b, s...)
	w.b = append(w.b, '\r', '\n')
}

func (w *writer) header(kind byte, n int) {
	w.b = append(w.b, kind)
	w.b = strconv.AppendInt(w.b, int64(n), 10)
	w.b = append(w.b, '\r', '\n')
}

func (w *writer) ok() { w.b = append(w.b, "+OK\r\n"...) }

func (w *writer) simple(s string) { w.line('+', s) }

func (w *writer) int(n int64) {
	w.b = append(w.b, ':')
	w.b = strconv.AppendInt(w.b, n, 10)
	w.b = append(w.b, '\r', '\n')
}

// flag writes 1 or 0, as Redis answers most yes-or-no questions.
func (w *writer) flag(yes bool) {
	if yes {
		w.b = append(w.b, ":1\r\n"...)
	} else {
		w.b = append(w.b, ":0\r\n"...)
	}
}

func (w *writer) bulk(s []byte) {
	w.header('$', len(s))
	w.b = append(w.b, s...)
	w.b = append(w.b, '\r', '\n')
}

func (w *writer) bulkString(s string) {
	w.header('$', len(s))
	w.b = append(w.b, s...)
	w.b = append(w.b, '\r', '\n')
}

// bulkInt writes n as the string of its digits: what GET and HGET answer.
func (w *writer) bulkInt(n int64) {
	if n >= 0 && n < 10 { // most counters are small
		w.b = append(w.b, '$', '1', '\r', '\n', '0'+byte(n), '\r', '\n')
		return
	}
	var digits [20]byte
	w.bulk(strconv.AppendInt(digits[:0], n, 10))
}

// null writes the absence of a value.
func (w *writer) null() {
	if w.resp3 {
		w.b = append(w.b, "_\r\n"...)
	} else {
		w.b = append(w.b, "$-1\r\n"...)
	}
}

// nullArray writes the absence of an array.
func (w *writer) nullArray() {
	if w.resp3 {
		w.b = append(w.b, "_\r\n"...)
	} else {
		w.b = append(w.b, "*-1\r\n"...)
	}
}

// array announces n replies that follow.
func (w *writer) array(n int) { w.header('*', n) }

// dict announces n pairs that follow.
func (w *writer) dict(n int) {
	if w.resp3 {
		w.header('%', n)
	} else {
		w.header('*', 2*n)
	}
}

// set announces n distinct replies that follow.
func (w *writer) set(n int) {
	if w.resp3 {
		w.header('~', n)
	} else {
		w.header('*', n)
	}
}

// double writes a number that need not be whole.
func (w *writer) double(f float64) {
	var digits [32]byte
	b := strconv.AppendFloat(digits[:0], f, 'g', 17, 64)
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		b = strconv.AppendInt(digits[:0], int64(f), 10)
	}
	if w.resp3 {
		w.line(',', string(b))
	} else {
		w.bulk(b)
	}
}

// text writes a text for people.
func (w *writer) text(s string) {
	if !w.resp3 {
		w.bulkString(s)
		return
	}
	w.header('=', len(s)+4)
	w.b = append(w.b, "txt:"...)
	w.b = append(w.b, s...)
	w.b = append(w.b, '\r', '\n')
}

// errorBytesMax bounds an error's text, which may quote what a client sent.
const errorBytesMax = 1 << 10

// error writes err; see errorText for its prefix.
func (w *writer) error(err error) {
	w.b = append(w.b, '-')
	from := len(w.b)
	w.b = append(w.b, errorText(err)...)
	if len(w.b)-from > errorBytesMax {
		w.b = w.b[:from+errorBytesMax]
	}
	for i := from; i < len(w.b); i++ { // a line end inside would begin another reply
		if w.b[i] == '\r' || w.b[i] == '\n' {
			w.b[i] = ' '
		}
	}
	w.b = append(w.b, '\r', '\n')
}
