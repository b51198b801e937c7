package main

import (
	"fmt"
	"log"
	"time"

	"github.com/tally-counter/tally/test/wire"
)

// restart measures how long a server that was killed with all its objects takes
// to answer the first read of one.
func restart(b *bench) error {
	n := b.scaled(objectsMax, 20_000)
	for _, column := range []string{redisEverysec, tallyName} {
		dir, err := b.folder()
		if err != nil {
			return err
		}
		p, err := start(column, dir)
		if err != nil {
			return err
		}
		if _, err := load(p, randomIDs, n); err != nil {
			p.Kill()
			return err
		}
		for range b.rounds {
			p.Kill()
			began := time.Now()
			if p, err = start(column, dir); err != nil {
				return err
			}
			// The first object: it was on disk long before the end.
			if err := holds(p, randomIDs, 0); err != nil {
				p.Kill()
				return err
			}
			took := time.Since(began)
			log.Printf("%s: first answer %v after the start", column, took)
			b.report.add(figure{"first answer after kill -9", "s", false, "≤ 1 s"}, column, took.Seconds())
		}
		p.Kill()
	}
	return nil
}

// holds checks that p has the i-th object of a model with one counter.
func holds(p peer, m model, i uint64) error {
	c, err := wire.Dial(p.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	o := m.object(i, nil)
	v, err := c.Do("GET", string(key(m, o)))
	if err != nil {
		return err
	}
	if want := fmt.Sprint(o.values[0]); v != want {
		return fmt.Errorf("%s: %s is %v after the restart, want %s", p.column, key(m, o), v, want)
	}
	return nil
}
