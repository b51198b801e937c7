package main

import (
	"context"

	"github.com/tally-counter/tally/engine"
	"github.com/tally-counter/tally/offline"
	"github.com/tally-counter/tally/remote"
	"github.com/tally-counter/tally/transfer"
)

// commandLine is every verb and flag.
type commandLine struct {
	Serve      serveVerb      `cmd:"" help:"Run the server."`
	Add        addVerb        `cmd:"" help:"Add to counters of one object, all or none."`
	Get        getVerb        `cmd:"" help:"Read counters of one object."`
	Scan       scanVerb       `cmd:"" help:"List the objects of a namespace in id order."`
	Import     importVerb     `cmd:"" help:"Count the rows of a file, or set counters from it. Exact through crashes: run it again to go on."`
	Export     exportVerb     `cmd:"" help:"Write all objects of a namespace in id order, as rows of id, counter, value."`
	Namespace  namespaceVerb  `cmd:"" help:"List, declare and drop namespaces."`
	Counter    counterVerb    `cmd:"" help:"List and declare the counters of a namespace, with their bounds."`
	Stats      statsVerb      `cmd:"" help:"Show the figures of a server or a data directory."`
	Verify     verifyVerb     `cmd:"" help:"Check a data directory that no server holds."`
	Checkpoint checkpointVerb `cmd:"" help:"Have the server write a checkpoint now."`
	Completion completionVerb `cmd:"" help:"Print a script that completes verbs and flags in a shell."`
	Complete   completeVerb   `cmd:"" hidden:"" help:"Print what may come next on a command line."`
	Version    versionVerb    `cmd:"" help:"Print the version."`
}

// connection says which server a verb talks to.
type connection struct {
	Addr     string `default:"127.0.0.1:6380" env:"TALLY_ADDR" placeholder:"HOST:PORT" help:"The server (${env}, default ${default})."`
	Password string `env:"TALLY_PASSWORD" placeholder:"TEXT" help:"The server's password; better given in ${env}, where other users do not see it."`
}

func (c connection) client() *remote.Client {
	return remote.New(remote.Options{Addr: c.Addr, Password: c.Password})
}

// place is a server, or a data directory that no server holds.
type place struct {
	connection
	Dir string `placeholder:"DIR" type:"path" help:"Work on this data directory, which no server may hold, instead of a server."`
}

// counts is what bulk verbs need of either.
type counts interface {
	transfer.Target
	transfer.Source
	Stats(context.Context) (map[string]any, error)
	Close() error
}

// open opens the place; create makes a directory that is not there.
func (p place) open(create bool) (counts, error) {
	if p.Dir == "" {
		return p.client(), nil
	}
	return offline.Open(p.Dir, create, engine.Options{})
}

// jsonFlag asks for JSON.
type jsonFlag struct {
	JSON bool `name:"json" help:"Print JSON, for scripts."`
}
