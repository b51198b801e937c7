package main

import "log"

// objectsMax is how many objects the memory and restart suites load at scale 1.
const objectsMax = 20_000_000

// memory measures the growth of the process per object, everything included, and
// the time of the load. Each peer runs alone.
func memory(b *bench) error {
	n := b.scaled(objectsMax, 20_000)
	for _, m := range []struct {
		model
		name, target string
	}{
		{randomIDs, "random ids, 1 counter", "≤ 7 B"},
		{timeOrdered, "time-ordered ids, 4 counters", "≤ 7.5 B"},
	} {
		for _, column := range []string{redisOff, tallyName} {
			grown, seconds, err := b.growth(column, m.model, n)
			if err != nil {
				return err
			}
			log.Printf("%s: %s: %.2f bytes an object", column, m.name, grown)
			b.report.add(figure{"memory, " + m.name, "bytes/object", false, m.target}, column, grown)
			b.report.add(figure{"load, " + m.name, "objects/s", true, ""}, column, float64(n)/seconds)
		}
	}
	return nil
}

// growth loads n objects into a fresh server and returns by how many bytes an
// object it has grown, and the seconds that it took.
func (b *bench) growth(column string, m model, n int) (bytes, seconds float64, err error) {
	peers, stop, err := b.startAll(column)
	if err != nil {
		return 0, 0, err
	}
	defer stop()
	before, err := peers[0].RSS()
	if err != nil {
		return 0, 0, err
	}
	took, err := load(peers[0], m, n)
	if err != nil {
		return 0, 0, err
	}
	after, err := peers[0].RSS()
	return float64(after-before) / float64(n), took.Seconds(), err
}
