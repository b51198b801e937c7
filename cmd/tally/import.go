package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/transfer"
)

type importVerb struct {
	File          string        `arg:"" placeholder:"FILE" help:"The file, or - for standard input (it is copied to a temporary file first)."`
	As            string        `enum:"events,values" default:"events" help:"events: every row is counted. values: every row sets counters."`
	Format        string        `placeholder:"FORMAT" help:"tsv, csv or jsonl; without it the file's name tells."`
	NoHeader      bool          `help:"The first row is data; columns are named 1, 2, 3 …"`
	Namespace     string        `default:"default" placeholder:"NS" help:"The namespace of the objects (${default})."`
	ID            string        `name:"id" placeholder:"COLUMN" help:"Column that holds the object's id, or a template of columns: '{year}/{path}'. Of values the default is id."`
	EmptyIDs      bool          `name:"empty-ids" help:"Take an empty id for the object of that id; without this such rows are bad."`
	Counter       string        `placeholder:"NAME" help:"The counter."`
	CounterColumn string        `placeholder:"COLUMN" help:"Column that names the counter. Of values the default is counter."`
	Delta         []string      `sep:"none" placeholder:"COLUMN" help:"Of events: column of what to add, or a number (1). Several columns, given one by one, are counters of their own names."`
	Value         []string      `sep:"none" placeholder:"COLUMN" help:"Of values: column of what to set (value). Several as with --delta."`
	TokenColumn   string        `placeholder:"COLUMN" help:"Column of each row's token; rows count once within the server's token retention."`
	Tokens        bool          `help:"Make a token for each row, of the file's content and the line, instead of a session for the file."`
	Strict        bool          `help:"Import nothing if any row is bad, and stop at the first that the server refuses."`
	DryRun        bool          `help:"Read and check every row, send nothing."`
	Rejects       string        `type:"path" placeholder:"FILE" help:"Write all bad rows there: line, reason, row."`
	RetryFor      time.Duration `default:"1m" placeholder:"TIME" help:"How long to try again when the server is away or busy (${default})."`
	jsonFlag
	place
}

// Help is shown by --help below the flags.
func (importVerb) Help() string {
	return "Events are counted exactly once for the content of the file and the flags that say what its columns mean: when an import was cut short," +
		" at either side, run the same command again and it goes on where it stopped, at any time. So the same file with the same flags counts" +
		" nothing a second time; a file that has grown is another file, and counts whole." +
		"\n\nBad rows are reported with line and reason and passed over; the exit code is 0 unless --strict is given." +
		"\n\nExample: tally import weblog.tsv --namespace page --id path --counter view"
}

func (v *importVerb) Run(ctx context.Context, std streams) error {
	o, err := v.options()
	if err != nil {
		return err
	}
	in, size, err := openInput(v.File, std.in)
	if err != nil {
		return err
	}
	defer in.Close()
	rejects, err := openRejects(v.Rejects, std.err)
	if err != nil {
		return err
	}
	o.Rejected = rejects.add
	bar := newBar(std.err, size)
	if !v.JSON {
		o.Progress = bar.show
	}
	var target counts
	if !v.DryRun {
		if target, err = v.open(true); err != nil {
			return errors.Join(err, rejects.close())
		}
	}
	report, err := transfer.Import(ctx, in, target, o)
	bar.clear()
	if target != nil {
		err = errors.Join(err, target.Close())
	}
	err = errors.Join(err, rejects.close())
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(std.err, "what was counted stays; run the same command again to go on")
	}
	if v.JSON {
		return errors.Join(printJSON(std.out, report), err)
	}
	if _, printErr := fmt.Fprintln(std.out, v.summary(report)); err == nil {
		err = printErr
	}
	return err
}

func (v *importVerb) options() (o transfer.ImportOptions, err error) {
	if v.Format != "" {
		o.Format, err = transfer.ParseFormat(v.Format)
	} else if v.File == "-" {
		err = usage("standard input has no name that tells its format; say --format tsv, csv or jsonl")
	} else {
		o.Format, err = transfer.FormatOf(v.File)
	}
	if err != nil {
		return o, err
	}
	o.Mapping = transfer.Mapping{
		Namespace: v.Namespace, ID: v.ID, EmptyID: v.EmptyIDs,
		Counter: v.Counter, CounterColumn: v.CounterColumn, Amounts: v.Delta, Token: v.TokenColumn,
	}
	switch {
	case v.As == "events" && len(v.Value) > 0:
		return o, usage("--value goes with --as values; events have --delta")
	case v.As == "values" && len(v.Delta) > 0:
		return o, usage("--delta goes with --as events; values have --value")
	case v.As == "values" && v.Tokens:
		return o, usage("--tokens goes with --as events; values may be set again at will")
	case v.Tokens && v.TokenColumn != "":
		return o, usage("--tokens and --token-column both give each row a token; say one")
	}
	if v.As == "values" {
		o.Mapping.Kind, o.Mapping.Amounts = transfer.Values, v.Value
	}
	for i, s := range o.Mapping.Amounts {
		o.Mapping.Amounts[i] = unshield(s)
	}
	if v.Tokens {
		o.Exact = transfer.ByTokens
	}
	o.Header, o.Strict, o.DryRun, o.RetryFor = !v.NoHeader, v.Strict, v.DryRun, v.RetryFor
	return o, o.Mapping.Check()
}

func (v *importVerb) summary(r transfer.Report) string {
	done := "counted"
	if v.As == "values" {
		done = "set"
	}
	s := fmt.Sprintf("%d rows in %s", r.Rows, r.Elapsed.Round(time.Millisecond))
	if seconds := r.Elapsed.Seconds(); r.Rows > 1000 && seconds > 0 {
		s += fmt.Sprintf(" (%.0f/s)", float64(r.Rows)/seconds)
	}
	if v.DryRun {
		return s + fmt.Sprintf(": %d good, %d bad; nothing was sent", r.Rows-r.Rejected, r.Rejected)
	}
	s += fmt.Sprintf(": %d %s", r.Applied, done)
	if r.Earlier > 0 {
		s += fmt.Sprintf(", %d counted by an earlier run", r.Earlier)
	}
	if r.Duplicate > 0 {
		s += fmt.Sprintf(", %d counted before (duplicate)", r.Duplicate)
	}
	if r.Rejected > 0 {
		s += fmt.Sprintf(", %d bad", r.Rejected)
	}
	if r.Retries > 0 {
		s += fmt.Sprintf(", %d retries", r.Retries)
	}
	return s
}

// openInput opens a file, or standard input as one that can be read twice.
func openInput(name string, stdin *os.File) (*os.File, int64, error) {
	f := stdin
	if name != "-" {
		var err error
		if f, err = os.Open(name); err != nil {
			return nil, 0, usage("%w", err)
		}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if info.Mode().IsRegular() {
		return f, info.Size(), nil
	}
	if info.IsDir() {
		return nil, 0, usage("%s is a directory", name)
	}
	spool, err := os.CreateTemp("", "tally-import-*")
	if err != nil {
		return nil, 0, err
	}
	if err = os.Remove(spool.Name()); err != nil { // it lives as long as it is open
		return nil, 0, errors.Join(err, spool.Close())
	}
	size, err := io.Copy(spool, f)
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("copying the input to %s: %w: %w", os.TempDir(), err, counter.ErrUnavailable), spool.Close())
	}
	return spool, size, nil
}
