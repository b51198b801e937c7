package main

import (
	"fmt"
	"strconv"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

type verifyVerb struct {
	Dir        string  `arg:"" type:"path" help:"The data directory; no server may hold it."`
	CutJournal *uint64 `placeholder:"POS" help:"First drop everything in the journal from this position on, acknowledged or not: the way out of a damaged journal that the report names. What is dropped is kept in files beside it."`
	jsonFlag
}

// Help is shown by --help below the flags.
func (verifyVerb) Help() string {
	return "Checks checksums, every page and its order, the directory's totals, and that the journal has no hole. Without --cut-journal it writes nothing. Exit code 5: something is damaged."
}

func (v *verifyVerb) Run(std streams) error {
	if v.CutJournal != nil {
		end, err := engine.CutJournal(v.Dir, engine.Pos(*v.CutJournal))
		if err != nil {
			return err
		}
		fmt.Fprintf(std.err, "the journal now ends at position %d; what followed is kept beside it in files named *.cut\n", end)
	}
	r, err := engine.Verify(v.Dir, engine.VerifyOptions{})
	if err != nil {
		return err
	}
	if v.JSON {
		err = printJSON(std.out, r)
	} else {
		err = v.print(std, r)
	}
	if err == nil && r.ProblemCount > 0 {
		err = fmt.Errorf("%s: %d problems: %w", v.Dir, r.ProblemCount, counter.ErrCorrupt)
	}
	return err
}

func (v *verifyVerb) print(std streams, r engine.VerifyReport) error {
	n := func(n int64) string { return strconv.FormatInt(n, 10) }
	err := printTable(std.out, [][]string{
		{"CHECKED", "COUNT"},
		{"namespaces", strconv.Itoa(r.Namespaces)},
		{"objects in the checkpoint", n(r.Objects)},
		{"pages", n(r.Pages)},
		{"bytes of pages", n(r.PageBytes)},
		{"tokens", n(r.Tokens)},
		{"sessions", n(r.Sessions)},
		{"journal segments", strconv.Itoa(r.Journal.Segments)},
		{"journal records", n(r.Journal.Records)},
		{"journal effects behind the checkpoint", n(r.Effects)},
		{"unacknowledged bytes at the journal's end", n(r.Journal.TornBytes)},
		{"problems", strconv.Itoa(r.ProblemCount)},
	})
	for _, p := range r.Problems {
		fmt.Fprintf(std.out, "%s: %s\n", shown(p.Place), shown(p.Error))
	}
	if more := r.ProblemCount - len(r.Problems); more > 0 {
		fmt.Fprintf(std.out, "… and %d more\n", more)
	}
	return err
}
