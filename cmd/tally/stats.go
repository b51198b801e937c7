package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

type statsVerb struct {
	jsonFlag
	place
}

func (v *statsVerb) Run(ctx context.Context, std streams) error {
	c, err := v.open(false)
	if err != nil {
		return err
	}
	stats, err := c.Stats(ctx)
	if closeErr := c.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if v.JSON {
		return printJSON(std.out, stats)
	}
	rows := [][]string{{"FIGURE", "VALUE"}}
	for _, name := range slices.Sorted(maps.Keys(stats)) {
		rows = append(rows, []string{name, figureText(stats[name])})
	}
	return printTable(std.out, rows)
}

func figureText(v any) string {
	if f, ok := v.(float64); ok && f == float64(int64(f)) {
		return fmt.Sprint(int64(f))
	} else if ok {
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprint(v)
}

type checkpointVerb struct{ connection }

func (v *checkpointVerb) Run(ctx context.Context) error {
	c := v.client()
	defer c.Close()
	return c.Checkpoint(ctx)
}
