package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the outcome of a run: what is printed and what the JSON file holds.
type report struct {
	Scale  float64   `json:"scale"`
	Rounds int       `json:"rounds"`
	CPUs   int       `json:"cpus"`
	Go     string    `json:"go"`
	Began  time.Time `json:"began"`
	Rows   []*row    `json:"rows"`
}

// row is one figure of every peer.
type row struct {
	Name    string               `json:"name"`
	Unit    string               `json:"unit"`
	Rising  bool                 `json:"higher_is_better"`
	Target  string               `json:"target,omitempty"`
	Samples map[string][]float64 `json:"samples"` // by the peer's name, as measured
}

// figure names a row.
type figure struct {
	name, unit string
	rising     bool   // more is better
	target     string // what Tally is to reach, in words; may be empty
}

// add notes one measurement of a peer.
func (r *report) add(f figure, peer string, value float64) {
	i := slices.IndexFunc(r.Rows, func(row *row) bool { return row.Name == f.name })
	if i < 0 {
		i = len(r.Rows)
		r.Rows = append(r.Rows, &row{f.name, f.unit, f.rising, f.target, map[string][]float64{}})
	}
	r.Rows[i].Samples[peer] = append(r.Rows[i].Samples[peer], value)
}

// median of what was measured for a peer, or false.
func (r *row) median(peer string) (float64, bool) {
	samples := slices.Sorted(slices.Values(r.Samples[peer]))
	if len(samples) == 0 {
		return 0, false
	}
	return (samples[(len(samples)-1)/2] + samples[len(samples)/2]) / 2, true
}

// ratio tells how many times better Tally is than the Redis it is held against:
// the one that syncs every second where there is one, as its users run it.
func (r *row) ratio() (times float64, against string, ok bool) {
	tally, ok := r.median(tallyName)
	if !ok || tally == 0 {
		return 0, "", false
	}
	for _, against = range []string{redisEverysec, redisOff} {
		redis, ok := r.median(against)
		if !ok || redis == 0 {
			continue
		}
		if r.Rising {
			return tally / redis, against, true
		}
		return redis / tally, against, true
	}
	return 0, "", false
}

func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "scale %g, median of %d, %d processors, %s\n\n", r.Scale, r.Rounds, r.CPUs, r.Go)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "figure\tunit\t%s\tTally is better by\ttarget\n", strings.Join(columns, "\t"))
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s", row.Name, row.Unit)
		for _, peer := range columns {
			if v, ok := row.median(peer); ok {
				fmt.Fprintf(t, "\t%s", readable(v))
			} else {
				fmt.Fprint(t, "\t-")
			}
		}
		if times, against, ok := row.ratio(); ok {
			fmt.Fprintf(t, "\t%.2f × %s", times, against)
			if times < 1 {
				fmt.Fprint(t, " (worse)")
			}
		} else {
			fmt.Fprint(t, "\t")
		}
		fmt.Fprintf(t, "\t%s\n", row.Target)
	}
	t.Flush()
}

// readable writes v with three or more digits and its thousands apart.
func readable(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case v < 1000:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
