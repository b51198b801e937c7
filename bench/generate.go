package main

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/tally-counter/tally/test/wire"
)

// keyPlace makes redis-benchmark write a random id in a key. It puts 12 digits
// there; the 1 before them makes an integer without leading zeroes of them.
const keyPlace = "1__rand_int__"

// firstID is the lowest id that keyPlace gives.
const firstID = 1_000_000_000_000

// workload is what redis-benchmark sends.
type workload struct {
	clients  int
	pipeline int
	requests int
	keys     int // random ids are firstID … firstID + keys - 1
	command  []string
}

// measured is what came of a workload.
type measured struct {
	perSecond      float64       // requests
	cpu            time.Duration // the server's, per request
	p50, p99, p999 time.Duration // from sending a pipeline to its last reply
}

// drive runs w against p.
func (w workload) drive(p peer) (measured, error) {
	// redis-benchmark goes on after error replies, so ask once ourselves.
	if err := once(p, w.command); err != nil {
		return measured{}, fmt.Errorf("%s: %.60q…: %w", p.column, strings.Join(w.command, " "), err)
	}
	host, port, err := net.SplitHostPort(p.Addr)
	if err != nil {
		return measured{}, err
	}
	args := []string{"-h", host, "-p", port,
		"-c", strconv.Itoa(w.clients), "-P", strconv.Itoa(w.pipeline), "-n", strconv.Itoa(w.requests)}
	if w.keys > 0 {
		args = append(args, "-r", strconv.Itoa(w.keys))
	}
	before, err := p.CPU()
	if err != nil {
		return measured{}, err
	}
	out, err := exec.Command("redis-benchmark", append(args, w.command...)...).CombinedOutput()
	if err != nil {
		return measured{}, fmt.Errorf("redis-benchmark against %s: %w\n%s", p.column, err, lastLines(string(out)))
	}
	after, err := p.CPU()
	if err != nil {
		return measured{}, err
	}
	m, err := readBenchmark(string(out))
	m.cpu = (after - before) / time.Duration(w.requests)
	return m, err
}

// once sends command with one id in place and returns its error.
func once(p peer, command []string) error {
	c, err := wire.Dial(p.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	c.Begin(len(command))
	for _, arg := range command {
		c.Arg(strings.ReplaceAll(arg, "__rand_int__", "000000000000"))
	}
	if err := c.Flush(); err != nil {
		return err
	}
	return c.Skip()
}

// readBenchmark reads redis-benchmark's long form: lines such as
//
//	99.902% <= 2.127 milliseconds (cumulative count 199807)
//	throughput summary: 87298.12 requests per second
func readBenchmark(out string) (m measured, err error) {
	if strings.Contains(out, "Error from server") || strings.Contains(out, "Server closed the connection") {
		return m, fmt.Errorf("redis-benchmark met errors:\n%s", lastLines(out))
	}
	for line := range strings.Lines(strings.ReplaceAll(out, "\r", "\n")) {
		var share, ms float64
		if n, _ := fmt.Sscanf(line, "%f%% <= %f milliseconds", &share, &ms); n == 2 {
			at := time.Duration(ms * float64(time.Millisecond))
			for _, q := range []struct {
				share float64
				to    *time.Duration
			}{{50, &m.p50}, {99, &m.p99}, {99.9, &m.p999}} {
				if share >= q.share && *q.to == 0 {
					*q.to = at
				}
			}
		}
		fmt.Sscanf(strings.TrimSpace(line), "throughput summary: %f requests per second", &m.perSecond)
	}
	if m.perSecond == 0 || m.p999 == 0 {
		return m, fmt.Errorf("redis-benchmark printed no summary:\n%s", lastLines(out))
	}
	return m, nil
}

// lastLines returns the end of a program's output, enough to see what went wrong.
func lastLines(out string) string { return out[max(0, len(out)-1000):] }
