package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/remote"
	"github.com/tally-counter/tally/transfer"
)

type addVerb struct {
	Key    string   `arg:"" help:"The object: NAMESPACE:ID, or ID in namespace default."`
	Deltas []string `arg:"" name:"counter delta" help:"Counter and what to add to it, as often as need be: like 1 view 3."`
	Token  string   `placeholder:"TEXT" help:"A name for this add: given again within the server's retention, it changes nothing."`
	jsonFlag
	connection
}

// Help is shown by --help below the flags.
func (addVerb) Help() string {
	return "Prints the value of each counter after the add. Exit code 3: a bound forbids it, nothing was changed."
}

func (v *addVerb) Run(ctx context.Context, std streams) error {
	if len(v.Deltas)%2 != 0 {
		return usage("counter %q has no delta; write COUNTER DELTA pairs, as in: tally add %s like 1", v.Deltas[len(v.Deltas)-1], v.Key)
	}
	var deltas []counter.Delta
	for i := 0; i < len(v.Deltas); i += 2 {
		by, err := parseWhole(v.Deltas[i+1])
		if err != nil {
			return usage("counter %q: delta %s", v.Deltas[i], err)
		}
		deltas = append(deltas, counter.Delta{Counter: v.Deltas[i], By: by})
	}
	c := v.client()
	defer c.Close()
	outcome, values, err := c.Add(ctx, v.Key, deltas, v.Token)
	if err != nil {
		return err
	}
	if v.JSON {
		answer := struct {
			Key     string           `json:"key"`
			Outcome string           `json:"outcome"`
			Values  map[string]int64 `json:"values"`
		}{v.Key, outcome.String(), map[string]int64{}}
		for i, d := range deltas {
			answer.Values[d.Counter] = values[i]
		}
		if err := printJSON(std.out, answer); err != nil {
			return err
		}
	}
	if outcome == counter.Rejected {
		return remote.Rejection(deltas, values)
	}
	if v.JSON {
		return nil
	}
	if outcome == counter.Duplicate {
		fmt.Fprintf(std.err, "duplicate: token %q was counted before, nothing was changed\n", v.Token)
	}
	if len(values) == 1 {
		_, err := fmt.Fprintln(std.out, values[0])
		return err
	}
	all := make([]counter.Value, len(deltas))
	for i, d := range deltas {
		all[i] = counter.Value{Counter: d.Counter, Value: values[i]}
	}
	return printValues(std, all)
}

func printValues(std streams, values []counter.Value) error {
	rows := [][]string{{"COUNTER", "VALUE"}}
	for _, v := range values {
		rows = append(rows, []string{v.Counter, strconv.FormatInt(v.Value, 10)})
	}
	return printTable(std.out, rows)
}

type getVerb struct {
	Key      string   `arg:"" help:"The object: NAMESPACE:ID, or ID in namespace default."`
	Counters []string `arg:"" optional:"" help:"Counters to read; none for all that the object has."`
	jsonFlag
	connection
}

// Help is shown by --help below the flags.
func (getVerb) Help() string {
	return "One counter is printed as a bare number, several as a table. A counter that is absent reads 0, in JSON null." +
		" Without counters, exit code 3 says that there is no such object."
}

func (v *getVerb) Run(ctx context.Context, std streams) error {
	c := v.client()
	defer c.Close()
	if len(v.Counters) > 0 {
		return v.named(ctx, std, c)
	}
	values, err := c.Get(ctx, v.Key)
	if err != nil {
		return err
	}
	if len(values) == 0 {
		return fmt.Errorf("there is no object %s: %w", v.Key, counter.ErrNotFound)
	}
	if v.JSON {
		return printJSON(std.out, keyed{v.Key, byName(values)})
	}
	return printValues(std, values)
}

func (v *getVerb) named(ctx context.Context, std streams, c *remote.Client) error {
	values, present, err := c.GetNamed(ctx, v.Key, v.Counters)
	if err != nil {
		return err
	}
	if v.JSON {
		m := map[string]*int64{}
		for i, name := range v.Counters {
			m[name] = nil
			if present[i] {
				m[name] = &values[i]
			}
		}
		return printJSON(std.out, keyed{v.Key, m})
	}
	if len(values) == 1 {
		_, err := fmt.Fprintln(std.out, values[0])
		return err
	}
	all := make([]counter.Value, len(values))
	for i, name := range v.Counters {
		all[i] = counter.Value{Counter: name, Value: values[i]}
	}
	return printValues(std, all)
}

// keyed is an object as JSON.
type keyed struct {
	Key    string `json:"key"`
	Values any    `json:"values"`
}

func byName(values []counter.Value) map[string]int64 {
	m := make(map[string]int64, len(values))
	for _, v := range values {
		m[v.Counter] = v.Value
	}
	return m
}

type scanVerb struct {
	Namespace string `arg:"" help:"The namespace."`
	From      string `default:"0" placeholder:"ID" help:"The id to begin at. Integers come before other ids."`
	Limit     whole  `default:"100" placeholder:"N" help:"How many objects to list (${default}); 0 for all."`
	jsonFlag
	connection
}

// Help is shown by --help below the flags.
func (scanVerb) Help() string {
	return "With --json each object is a line of its own. When there are more, the id to go on from is printed on standard error."
}

const scanPageMax = 1000 // objects asked for at once

func (v *scanVerb) Run(ctx context.Context, std streams) error {
	if v.Limit < 0 {
		return usage("--limit %d is negative", v.Limit)
	}
	c := v.client()
	defer c.Close()
	from := counter.ParseID(v.From)
	heading := !v.JSON
	for left := v.Limit; ; {
		step := scanPageMax
		if v.Limit > 0 {
			step = int(min(scanPageMax, left))
		}
		page, err := c.Scan(ctx, v.Namespace, from, step)
		if err != nil {
			return err
		}
		if err := v.print(std, page.Objects, heading); err != nil {
			return err
		}
		left -= whole(len(page.Objects))
		heading = false
		if !page.More {
			return nil
		}
		from = page.Next
		if v.Limit > 0 && left <= 0 {
			fmt.Fprintf(std.err, "there are more; go on with --from %s\n", shown(from.String()))
			return nil
		}
	}
}

func (v *scanVerb) print(std streams, objects []transfer.Object, heading bool) error {
	var rows [][]string
	if heading {
		rows = append(rows, []string{"ID", "COUNTERS"})
	}
	for _, o := range objects {
		if v.JSON {
			line := struct {
				ID     string           `json:"id"`
				Values map[string]int64 `json:"values"`
			}{o.ID.String(), byName(o.Values)}
			if err := printJSON(std.out, line); err != nil {
				return err
			}
			continue
		}
		text := ""
		for i, val := range o.Values {
			if i > 0 {
				text += " "
			}
			text += fmt.Sprintf("%s=%d", val.Counter, val.Value)
		}
		rows = append(rows, []string{o.ID.String(), text})
	}
	return printTable(std.out, rows)
}
