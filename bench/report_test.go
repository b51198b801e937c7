package main

import (
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	r := &report{Scale: 1, Rounds: 3}
	speed := figure{"INCR", "requests/s", true, "≥ 1.5 ×"}
	for _, v := range []float64{300, 100, 200} {
		r.add(speed, redisEverysec, v)
		r.add(speed, tallyName, 10*v)
	}
	r.add(speed, redisOff, 1e6)
	size := figure{"memory", "bytes/object", false, ""}
	r.add(size, redisOff, 50)
	r.add(size, tallyName, 100)
	var out strings.Builder
	r.print(&out)
	for _, want := range []string{"2,000", "1,000,000", "10.00 × " + redisEverysec, "≥ 1.5 ×", "0.50 × " + redisOff + " (worse)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestMedian(t *testing.T) {
	r := row{Samples: map[string][]float64{"odd": {3, 1, 2}, "even": {4, 1, 2, 3}}}
	for peer, want := range map[string]float64{"odd": 2, "even": 2.5} {
		if got, ok := r.median(peer); !ok || got != want {
			t.Errorf("median of %s = %v, %v; want %v", peer, got, ok, want)
		}
	}
	if _, ok := r.median("none"); ok {
		t.Error("a peer without samples has a median")
	}
}

func TestReadBenchmark(t *testing.T) {
	out := "INCR: rps=0.0\r\n50.000% <= 0.295 milliseconds (cumulative count 120090)\n" +
		"99.219% <= 0.815 milliseconds (cumulative count 198476)\n99.902% <= 2.127 milliseconds (cumulative count 199807)\n" +
		"99.951% <= 2.455 milliseconds (cumulative count 199904)\n  throughput summary: 87298.12 requests per second\n"
	want := measured{87298.12, 0, 295 * time.Microsecond, 815 * time.Microsecond, 2127 * time.Microsecond}
	if got, err := readBenchmark(out); err != nil || got != want {
		t.Errorf("readBenchmark = %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "Error from server: ERR no\n" + out} {
		if _, err := readBenchmark(bad); err == nil {
			t.Errorf("output %q was accepted", bad)
		}
	}
}
