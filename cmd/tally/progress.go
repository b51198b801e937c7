package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/tally-counter/tally/transfer"
)

const (
	barCells = 30
	barEvery = 100 * time.Millisecond
)

// bar shows progress on a terminal, and nothing elsewhere.
type bar struct {
	out   *os.File // nil: no terminal
	total int64    // bytes; 0: not known
	begin time.Time
	drawn time.Time
}

func newBar(out *os.File, total int64) *bar {
	b := &bar{total: total, begin: time.Now()}
	if term.IsTerminal(int(out.Fd())) {
		b.out = out
	}
	return b
}

func (b *bar) show(p transfer.Progress) {
	if now := time.Now(); b.out == nil || now.Sub(b.drawn) < barEvery {
		return
	} else {
		b.drawn = now
	}
	rate := float64(p.Rows) / time.Since(b.begin).Seconds()
	text := fmt.Sprintf("%d rows, %.0f/s", p.Rows, rate)
	if b.total > 0 {
		part := min(1, float64(p.Bytes)/float64(b.total))
		full := int(part * barCells)
		text = fmt.Sprintf("[%s%s] %3.0f%% %s", strings.Repeat("#", full), strings.Repeat(".", barCells-full), 100*part, text)
	}
	fmt.Fprintf(b.out, "\r\x1b[K%s", text)
}

// clear takes the bar away.
func (b *bar) clear() {
	if b.out != nil && !b.drawn.IsZero() {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}
