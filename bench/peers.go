package main

import (
	"fmt"
	"log"

	"github.com/tally-counter/tally/test/proc"
)

// The peers by name, which is also their column. Redis runs once for each answer
// it has to "what may a crash lose"; Tally runs with its default, --sync always.
const (
	redisOff      = "Redis (no AOF)"
	redisEverysec = "Redis everysec"
	redisAlways   = "Redis always"
	tallyName     = "Tally"
)

var columns = []string{redisOff, redisEverysec, redisAlways, tallyName}

// peer is a running server with its column.
type peer struct {
	*proc.Server
	column string
}

func (p peer) isTally() bool { return p.column == tallyName }

// start runs the peer of a column with its data in dir.
func start(column, dir string) (peer, error) {
	var s *proc.Server
	var err error
	switch column {
	case redisOff:
		s, err = proc.Redis(dir, "--appendonly", "no")
	case redisEverysec:
		s, err = proc.Redis(dir, "--appendonly", "yes", "--appendfsync", "everysec")
	case redisAlways:
		s, err = proc.Redis(dir, "--appendonly", "yes", "--appendfsync", "always")
	case tallyName:
		s, err = proc.Tally(dir)
	default:
		err = fmt.Errorf("no peer is called %q", column)
	}
	return peer{s, column}, err
}

// startAll runs the peers of several columns, each in a new folder. stop ends them.
func (b *bench) startAll(names ...string) (peers []peer, stop func(), err error) {
	stop = func() {
		for _, p := range peers {
			p.Kill()
		}
	}
	for _, name := range names {
		dir, err := b.folder()
		if err != nil {
			stop()
			return nil, nil, err
		}
		p, err := start(name, dir)
		if err != nil {
			stop()
			return nil, nil, err
		}
		log.Printf("%s on %s, ready in %v", name, p.Addr, p.Start)
		peers = append(peers, p)
	}
	return peers, stop, nil
}
