package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/transfer"
)

type exportVerb struct {
	Namespace string  `arg:"" help:"The namespace."`
	Out       string  `short:"o" type:"path" placeholder:"FILE" help:"Write to this file instead of standard output."`
	Format    string  `placeholder:"FORMAT" help:"tsv, csv or jsonl; without it the file's name tells, or tsv."`
	From      *string `placeholder:"ID" help:"Go on from this id: without a header, and at the end of FILE."`
	jsonFlag
	place
}

// Help is shown by --help below the flags.
func (exportVerb) Help() string {
	return "Each counter is a row of id, counter, value, so counters that are absent and counters that hold 0 stay apart. To import the file again:" +
		" tally import FILE --as values --namespace NS. Expiry times are not exported. With --json, a report goes to standard error."
}

func (v *exportVerb) Run(ctx context.Context, std streams) error {
	format, err := v.format()
	if err != nil {
		return err
	}
	src, err := v.open(false)
	if err != nil {
		return err
	}
	from, begins := counter.ID{}, v.From == nil // the first integer comes before everything
	if !begins {
		from = counter.ParseID(*v.From)
	}
	out := std.out
	if v.Out != "" {
		if out, err = openOutput(v.Out, !begins); err != nil {
			return errors.Join(err, src.Close())
		}
	}
	bar := newBar(std.err, 0)
	show := func(e transfer.Exported) { bar.show(transfer.Progress{Rows: e.Rows}) }
	done, err := transfer.Export(ctx, src, out, v.Namespace, from, format, begins, show)
	bar.clear()
	err = errors.Join(err, src.Close())
	if v.Out != "" {
		err = errors.Join(err, out.Sync(), out.Close())
	}
	if v.JSON {
		return errors.Join(printJSON(std.err, done), err)
	}
	if err != nil && done.Next != "" {
		return fmt.Errorf("%d objects were written; go on with --from %s: %w", done.Objects, shown(done.Next), err)
	}
	if v.Out != "" {
		fmt.Fprintf(std.err, "%d objects, %d rows\n", done.Objects, done.Rows)
	}
	return err
}

func (v *exportVerb) format() (transfer.Format, error) {
	switch {
	case v.Format != "":
		return transfer.ParseFormat(v.Format)
	case v.Out != "":
		return transfer.FormatOf(v.Out)
	}
	return transfer.TSV, nil
}

// openOutput makes the file, or opens it to append whole rows.
func openOutput(name string, appendTo bool) (*os.File, error) {
	if !appendTo {
		f, err := os.Create(name)
		if err != nil {
			return nil, usage("%w", err)
		}
		return f, nil
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, usage("%w", err)
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err == nil && end > 0 {
		last := make([]byte, 1)
		if _, err = f.ReadAt(last, end-1); err == nil && last[0] != '\n' {
			err = usage("%s ends in the middle of a row; cut that row off, and go on from its id", name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
