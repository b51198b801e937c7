package main

import (
	"context"
	"math"
	"strconv"

	"github.com/tally-counter/tally/counter"
)

type namespaceVerb struct {
	List    namespaceListVerb    `cmd:"" help:"List the namespaces."`
	Declare namespaceDeclareVerb `cmd:"" help:"Make a namespace known."`
	Drop    namespaceDropVerb    `cmd:"" help:"Delete a namespace with all its objects."`
}

type namespaceListVerb struct {
	jsonFlag
	connection
}

func (v *namespaceListVerb) Run(ctx context.Context, std streams) error {
	c := v.client()
	defer c.Close()
	all, err := c.Namespaces(ctx)
	if err != nil {
		return err
	}
	if v.JSON {
		return printJSON(std.out, all)
	}
	rows := [][]string{{"NAMESPACE", "OBJECTS", "COUNTERS"}}
	for _, ns := range all {
		rows = append(rows, []string{ns.Name, strconv.FormatInt(ns.Objects, 10), strconv.FormatInt(ns.Counters, 10)})
	}
	return printTable(std.out, rows)
}

type namespaceDeclareVerb struct {
	Namespace string `arg:"" help:"The namespace."`
	connection
}

func (v *namespaceDeclareVerb) Run(ctx context.Context) error {
	c := v.client()
	defer c.Close()
	return c.DeclareNamespace(ctx, v.Namespace)
}

type namespaceDropVerb struct {
	Namespace string `arg:"" help:"The namespace."`
	Yes       bool   `help:"Do it. Without this flag nothing is dropped."`
	connection
}

func (v *namespaceDropVerb) Run(ctx context.Context) error {
	if !v.Yes {
		return usage("this deletes every object of namespace %q for good; say --yes to do it", v.Namespace)
	}
	c := v.client()
	defer c.Close()
	return c.DropNamespace(ctx, v.Namespace)
}

type counterVerb struct {
	List    counterListVerb    `cmd:"" help:"List the counters of a namespace."`
	Declare counterDeclareVerb `cmd:"" help:"Make a counter known, or give it other bounds."`
}

type counterListVerb struct {
	Namespace string `arg:"" help:"The namespace."`
	jsonFlag
	connection
}

func (v *counterListVerb) Run(ctx context.Context, std streams) error {
	c := v.client()
	defer c.Close()
	all, err := c.Counters(ctx, v.Namespace)
	if err != nil {
		return err
	}
	if v.JSON {
		type schema struct {
			Counter string `json:"counter"`
			Kind    string `json:"kind"`
			Min     *int64 `json:"min"`
			Max     *int64 `json:"max"`
			Policy  string `json:"policy"`
		}
		out := make([]schema, len(all))
		for i, s := range all {
			out[i] = schema{s.Name, s.Kind.String(), bound(s.Min, math.MinInt64), bound(s.Max, math.MaxInt64), s.Policy.String()}
		}
		return printJSON(std.out, out)
	}
	rows := [][]string{{"COUNTER", "KIND", "MIN", "MAX", "POLICY"}}
	for _, s := range all {
		rows = append(rows, []string{s.Name, s.Kind.String(), boundText(s.Min, math.MinInt64), boundText(s.Max, math.MaxInt64), s.Policy.String()})
	}
	return printTable(std.out, rows)
}

func bound(v, none int64) *int64 {
	if v == none {
		return nil
	}
	return &v
}

func boundText(v, none int64) string {
	if v == none {
		return "-"
	}
	return strconv.FormatInt(v, 10)
}

type counterDeclareVerb struct {
	Namespace string `arg:"" help:"The namespace."`
	Counter   string `arg:"" help:"The counter."`
	Min       *whole `placeholder:"N" help:"The lowest value; none if not given."`
	Max       *whole `placeholder:"N" help:"The highest value; none if not given."`
	Policy    string `enum:"reject,clamp" default:"reject" help:"An add beyond a bound is refused (reject), or stops at it (clamp)."`
	connection
}

func (v *counterDeclareVerb) Run(ctx context.Context) error {
	s := counter.Undeclared(v.Counter)
	if v.Min != nil {
		s.Min = int64(*v.Min)
	}
	if v.Max != nil {
		s.Max = int64(*v.Max)
	}
	if v.Policy == counter.Clamp.String() {
		s.Policy = counter.Clamp
	}
	if err := s.Validate(); err != nil {
		return err
	}
	c := v.client()
	defer c.Close()
	return c.DeclareCounter(ctx, v.Namespace, s)
}
