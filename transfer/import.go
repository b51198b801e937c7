package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tally-counter/tally/counter"
)

const (
	batchItemsMax = 1000    // items of one batch
	batchBytesMax = 1 << 20 // bytes of rows in one batch, or of bad rows held, but for the last row
	windowMax     = 16      // batches under way at once

	retryFirst = 50 * time.Millisecond
	retryMax   = 2 * time.Second
)

// Exactness is how an import of events counts each row once though it is cut
// short and run again.
type Exactness uint8

const (
	BySession  Exactness = iota // the producer is the content and its mapping: exact without time limit
	ByTokens                    // a token a row, of the content and the line: exact within the token retention
	ByYourself                  // the rows bring tokens (Mapping.Token): exact within the token retention
)

// ImportOptions say what to import and how. Zero values mean the defaults.
type ImportOptions struct {
	Format   Format
	Header   bool // the first row of TSV or CSV names the columns
	Mapping  Mapping
	Exact    Exactness     // of events; values are the same however often they are set
	Strict   bool          // a bad row fails the import: one that can't be read before anything is sent
	DryRun   bool          // read and check every row, send nothing
	RetryFor time.Duration // how long to go on trying without progress; default 1 min

	Rejected func(BadRow)   // told each bad row
	Progress func(Progress) // told now and then
}

// Progress is how far an import is.
type Progress struct {
	Bytes int64 // of the input, read so far
	Rows  int64 // dealt with so far
}

// Report is what an import did. Rows = Applied + Duplicate + Earlier + Rejected.
type Report struct {
	Rows      int64         `json:"rows"`      // read, bad ones included
	Applied   int64         `json:"applied"`   // counted now, or set
	Duplicate int64         `json:"duplicate"` // answered as counted already; nothing changed
	Earlier   int64         `json:"earlier"`   // counted by an earlier run of the same import, not sent again
	Rejected  int64         `json:"rejected"`  // bad rows
	Retries   int64         `json:"retries"`   // attempts after the first
	Bytes     int64         `json:"bytes"`
	Elapsed   time.Duration `json:"elapsed_nanos"`
	Producer  string        `json:"producer,omitempty"` // of the session
}

// Import reads rows from in and sends them to target.
//
// What was sent is known by the content of in and the mapping, so the same call
// after a crash, of either side, goes on where the first one stopped. The report
// is set with an error too: what was applied stays.
//
// Errors: ErrInvalid for options, header, or bad rows when Strict; ErrFenced when
// another process runs the same import; those of target, after retries.
func Import(ctx context.Context, in io.ReadSeeker, target Target, o ImportOptions) (Report, error) {
	if o.RetryFor == 0 {
		o.RetryFor = time.Minute
	}
	if o.Mapping.Token != "" {
		o.Exact = ByYourself
	}
	im := &importer{o: o, target: target, in: in, started: time.Now()}
	err := im.run(ctx)
	im.report.Bytes = im.bytes.Load()
	im.report.Elapsed = time.Since(im.started)
	return im.report, err
}

type importer struct {
	o       ImportOptions
	target  Target
	in      io.ReadSeeker
	started time.Time
	report  Report

	rule    *rule
	content string       // hash of the input, hex; "" when nothing hangs on it
	bytes   atomic.Int64 // read, by the parser's goroutine

	epoch, last uint64 // of the session
	stale       bool   // an answer was lost: a new epoch shuts out what may still be under way
}

func (im *importer) run(ctx context.Context) (err error) {
	if im.rule, err = newRule(im.o.Mapping); err != nil {
		return err
	}
	if im.o.Strict || im.o.DryRun {
		if err := im.rehearse(); err != nil || im.o.DryRun {
			return err
		}
	}
	if im.o.Mapping.Kind == Events && im.o.Exact != ByYourself {
		if im.content, err = hashOf(im.in); err != nil {
			return err
		}
	}
	if im.session() {
		im.report.Producer = im.producer()
		if err := im.retry(ctx, im.open); err != nil {
			return err
		}
	}
	return im.send(ctx)
}

func (im *importer) session() bool {
	return im.o.Mapping.Kind == Events && im.o.Exact == BySession
}

// hashOf reads in to its end and back to its beginning.
func hashOf(in io.ReadSeeker) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return "", err
	}
	_, err := in.Seek(0, io.SeekStart)
	return hex.EncodeToString(h.Sum(nil)), err
}

// producer names the session by all that decides which row stands in which batch.
func (im *importer) producer() string {
	m := im.rule.Mapping
	h := sha256.New()
	fmt.Fprintf(h, "1 %s %s %t %d %d\n%q %q %t %q %q %q", im.content, im.o.Format, im.o.Header, batchItemsMax, batchBytesMax,
		m.Namespace, m.ID, m.EmptyID, m.Counter, m.CounterColumn, m.Amounts)
	return "import-" + hex.EncodeToString(h.Sum(nil)[:20])
}

func (im *importer) open(ctx context.Context) error {
	epoch, last, err := im.target.OpenSession(ctx, im.report.Producer)
	if err != nil {
		return err
	}
	if last < im.last {
		return fmt.Errorf("the server stands at batch %d of this import and had acknowledged %d: it lost data;"+
			" run the import again, it goes on from there: %w", last, im.last, counter.ErrConflict)
	}
	im.epoch, im.last, im.stale = epoch, last, false
	return nil
}

// rehearse reads every row and sends none.
func (im *importer) rehearse() error {
	good := int64(0)
	err := im.parse(func(p parsed) bool {
		im.reject(p.bad)
		good += int64(len(p.items))
		return true
	})
	if err == nil && im.o.Strict && im.report.Rejected > 0 {
		err = fmt.Errorf("%d bad rows; nothing was imported: %w", im.report.Rejected, counter.ErrInvalid)
	}
	if im.o.DryRun || err != nil {
		im.report.Rows += good
		return err
	}
	im.bytes.Store(0)
	_, err = im.in.Seek(0, io.SeekStart)
	return err
}

func (im *importer) reject(rows []*BadRow) {
	for _, row := range rows {
		im.report.Rows++
		im.report.Rejected++
		if im.o.Rejected != nil {
			im.o.Rejected(*row)
		}
	}
}

// send parses ahead in a goroutine of its own and sends what it finds.
func (im *importer) send(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	ahead := make(chan parsed, windowMax)
	var parseErr error // set before ahead is closed
	go func() {
		defer close(ahead)
		parseErr = im.parse(func(p parsed) bool {
			select {
			case ahead <- p:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	defer func() { // the goroutine ends before send does
		cancel()
		for range ahead {
		}
	}()

	seq := uint64(0)
	for p := range ahead {
		window := im.take(nil, p, &seq)
		for more := true; more && len(window) < windowMax; {
			select {
			case p, ok := <-ahead:
				if more = ok; ok {
					window = im.take(window, p, &seq)
				}
			default:
				more = false
			}
		}
		if err := im.deliver(ctx, window); err != nil {
			return err
		}
		if im.o.Progress != nil {
			im.o.Progress(Progress{Bytes: im.bytes.Load(), Rows: im.report.Rows})
		}
		if im.o.Strict && im.report.Rejected > 0 {
			return fmt.Errorf("the import stopped at a rejected row; the %d rows counted before it stay: %w", im.report.Applied+im.report.Earlier, counter.ErrInvalid)
		}
	}
	return parseErr
}

// take appends p's items to the window as one batch, unless an earlier run has
// sent them.
func (im *importer) take(window []*Batch, p parsed, seq *uint64) []*Batch {
	im.reject(p.bad)
	if len(p.items) == 0 {
		return window
	}
	b := &Batch{Kind: im.o.Mapping.Kind, Items: p.items}
	if im.session() {
		*seq++
		if *seq <= im.last {
			im.report.Rows += int64(len(p.items))
			im.report.Earlier += int64(len(p.items))
			return window
		}
		b.Producer, b.Seq = im.report.Producer, *seq
	}
	return append(window, b)
}

// deliver sends the window until every batch of it is answered.
func (im *importer) deliver(ctx context.Context, window []*Batch) error {
	for len(window) > 0 {
		err := im.retry(ctx, func(ctx context.Context) error {
			if im.stale {
				if err := im.open(ctx); err != nil {
					return err
				}
			}
			before := len(window)
			for _, b := range window {
				b.Epoch = im.epoch
			}
			done, err := im.target.Send(ctx, window)
			var again []*Batch
			var refused error
			for _, b := range window[:done] {
				if left, why := im.settle(b); left != nil {
					again, refused = append(again, left), why
				}
			}
			window = append(again, window[done:]...)
			im.stale = err != nil && im.session()
			if err == nil {
				err = refused
			}
			if err != nil && len(window) < before {
				return nil // progress: the patience begins anew
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// settle counts a batch's answers. It returns the items that are worth another
// attempt, and why they are; nil when there are none.
func (im *importer) settle(b *Batch) (again *Batch, why error) {
	if b.Producer != "" {
		im.last = b.Seq
	}
	im.report.Rows += int64(b.Applied + b.Duplicate)
	im.report.Applied += int64(b.Applied)
	im.report.Duplicate += int64(b.Duplicate)
	left := &Batch{Kind: b.Kind}
	for _, r := range b.Refused {
		it := b.Items[r.Item]
		if b.Producer == "" && passes(r.Err) {
			left.Items, why = append(left.Items, it), r.Err
			continue
		}
		im.reject([]*BadRow{{Line: it.Line, Reason: r.Err.Error(), Raw: it.Raw}})
	}
	if len(left.Items) == 0 {
		return nil, nil
	}
	return left, why
}

// passes tells whether err may be gone with the next attempt.
func passes(err error) bool {
	for _, kind := range []error{counter.ErrBusy, counter.ErrUnavailable, counter.ErrUnknown, counter.ErrGap} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// retry calls do until it succeeds, fails for good, or RetryFor is over.
func (im *importer) retry(ctx context.Context, do func(context.Context) error) error {
	deadline := time.Now().Add(im.o.RetryFor)
	for pause := retryFirst; ; pause = min(2*pause, retryMax) {
		err := do(ctx)
		if err == nil || !passes(err) {
			return err
		}
		if time.Now().Add(pause).After(deadline) {
			return fmt.Errorf("gave up after %s without progress; run the same import again to go on: %w", im.o.RetryFor, err)
		}
		im.report.Retries++
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// parsed is a stretch of the input.
type parsed struct {
	items []Item // the items of one batch; empty: only bad rows
	bad   []*BadRow
}

// parse reads the input and hands it out stretch by stretch until give returns
// false. Which item stands in which stretch depends on nothing but the input and
// the options, so that a second run numbers the batches as the first did.
func (im *importer) parse(give func(parsed) bool) error {
	counted := &countingReader{r: im.in, n: &im.bytes}
	rows, err := NewReader(im.o.Format, counted, im.rule.columns, im.o.Header)
	if err != nil {
		return err
	}
	tokenHead := ""
	if im.o.Exact == ByTokens && im.content != "" {
		tokenHead = im.content[:32] + "-"
	}
	var p parsed
	var row Row
	bytes, badBytes := 0, 0
	for {
		err := rows.Read(&row)
		var bad *BadRow
		switch {
		case errors.Is(err, io.EOF):
			if len(p.items)+len(p.bad) > 0 {
				give(p)
			}
			return nil
		case errors.As(err, &bad):
		case err != nil:
			return fmt.Errorf("input, behind line %d: %w", row.Line, err)
		default:
			it, reason := im.rule.item(&row)
			if reason != "" {
				bad = &BadRow{Line: row.Line, Reason: reason, Raw: row.Raw}
				break
			}
			if tokenHead != "" {
				it.Token = tokenHead + strconv.Itoa(row.Line)
			}
			if p.items == nil {
				p.items = make([]Item, 0, batchItemsMax)
			}
			p.items = append(p.items, it)
			bytes += len(row.Raw)
		}
		if bad != nil {
			p.bad = append(p.bad, bad)
			badBytes += len(bad.Raw) + 64
		}
		switch {
		case len(p.items) == batchItemsMax || bytes >= batchBytesMax:
			if !give(p) {
				return nil
			}
			p, bytes, badBytes = parsed{}, 0, 0
		case badBytes >= batchBytesMax: // the batch goes on: bad rows do not decide where it ends
			if !give(parsed{bad: p.bad}) {
				return nil
			}
			p.bad, badBytes = nil, 0
		}
	}
}

type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}
