package main

import (
	"log"
	"slices"
	"time"
)

// The sizes of the traffic suite. Requests of a Redis command; Tally's own
// commands carry many at once and are sent as often less.
const (
	hotKeys      = 1_000_000
	feedObjects  = 50   // objects in one read of a feed
	batchDeltas  = 1000 // deltas in one batch
	hotClients   = 256
	usualClients = 50
)

// traffic measures what requests cost on objects that exist: INCR alone and
// pipelined, the read of a feed, a batch of adds, one hot counter.
func traffic(b *bench) error {
	peers, stop, err := b.startAll(columns...)
	if err != nil {
		return err
	}
	defer stop()
	keys := b.scaled(hotKeys, 1000)
	for _, p := range peers {
		for _, m := range []model{hotPages, hotPosts} {
			if _, err := load(p, m, keys); err != nil {
				return err
			}
		}
	}
	for _, c := range trafficCases(b, keys) {
		// Round by round, peer by peer, so that a slow minute of the machine
		// does not fall on one peer alone.
		for range b.rounds {
			for _, p := range peers {
				if err := c.measure(b.report, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// trafficCase is one kind of traffic, as each side says it.
type trafficCase struct {
	name         string
	redis, tally workload
	redisItems   int // items that one request carries: objects read, deltas added
	tallyItems   int
	item         string // what an item is called
	latency      bool   // report percentiles
	speedTarget  string
	cpuTarget    string
}

func trafficCases(b *bench, keys int) []trafficCase {
	incr := func(requests, clients, pipeline int) workload {
		return workload{clients, pipeline, b.scaled(requests, 2000), keys, []string{"INCR", "page:" + keyPlace}}
	}
	alone := incr(500_000, usualClients, 1)
	piped := incr(4_000_000, usualClients, 16)
	hot := workload{hotClients, 16, b.scaled(4_000_000, 8192), 0, []string{"INCR", "page:hot"}}
	feed := slices.Concat([]string{"HMGET", "post:" + keyPlace}, feedCounters)
	batch := incr(4_000_000, usualClients, batchDeltas)
	return []trafficCase{
		{
			name: "INCR, pipeline 1", redis: alone, tally: alone, redisItems: 1, tallyItems: 1, item: "request",
			latency: true, cpuTarget: "≥ 1 ×",
		},
		{
			name: "INCR, pipeline 16", redis: piped, tally: piped, redisItems: 1, tallyItems: 1, item: "request",
			latency: true, speedTarget: "≥ 1.5 ×", cpuTarget: "≤ 1.1 µs",
		},
		{
			name: "feed read, 50 objects × 4 counters", item: "object", speedTarget: "≥ 5 ×", latency: true,
			redis:      workload{usualClients, feedObjects, b.scaled(4_000_000, 5000), keys, feed},
			tally:      workload{usualClients, 1, b.scaled(400_000, 100), keys, feedCommand()},
			redisItems: 1, tallyItems: feedObjects,
		},
		{
			name: "batch of 1,000 deltas", item: "delta", speedTarget: "≥ 6 ×", latency: true,
			redis:      batch,
			tally:      workload{usualClients, 1, b.scaled(20_000, 100), keys, batchCommand()},
			redisItems: 1, tallyItems: batchDeltas,
		},
		{
			name: "one hot counter, 256 clients, pipeline 16", redis: hot, tally: hot, redisItems: 1, tallyItems: 1,
			item: "add", speedTarget: "≥ 1,000,000/s", latency: true,
		},
	}
}

func (c trafficCase) measure(r *report, p peer) error {
	w, items := c.redis, c.redisItems
	if p.isTally() {
		w, items = c.tally, c.tallyItems
	}
	m, err := w.drive(p)
	if err != nil {
		return err
	}
	log.Printf("%s: %s: %.0f %ss/s", p.column, c.name, m.perSecond*float64(items), c.item)
	r.add(figure{c.name, c.item + "s/s", true, c.speedTarget}, p.column, m.perSecond*float64(items))
	cpu := float64(m.cpu) / float64(time.Microsecond) / float64(items)
	r.add(figure{c.name + ": server CPU", "µs/" + c.item, false, c.cpuTarget}, p.column, cpu)
	if c.latency {
		for _, q := range []struct {
			name string
			at   time.Duration
		}{{"p50", m.p50}, {"p99", m.p99}, {"p99.9", m.p999}} {
			r.add(figure{c.name + ": " + q.name, "ms", false, ""}, p.column, q.at.Seconds()*1000)
		}
	}
	return nil
}
