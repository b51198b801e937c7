package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
	"github.com/tally-counter/tally/resp"
)

type serveVerb struct {
	Data           string        `default:"./tally-data" type:"path" placeholder:"DIR" help:"The data directory; made if it is not there (./tally-data)."`
	Resp           string        `default:"127.0.0.1:6380" env:"TALLY_RESP" placeholder:"HOST:PORT" help:"Where to serve the Redis protocol (${default}); port 0 takes a free one."`
	Sync           string        `enum:"always,interval,never" default:"always" help:"When an add is acknowledged: once it is on disk (always), or at once, written every --sync-interval (interval) or when the system likes (never)."`
	SyncInterval   time.Duration `default:"1s" placeholder:"TIME" help:"With --sync interval: what a crash of the machine may lose (${default})."`
	Memory         byteSize      `default:"0" placeholder:"SIZE" help:"Budget for pages in memory, like 512MiB or 8GiB; colder pages stay on disk. 0: half of what the machine has."`
	ClosedSchema   bool          `help:"Refuse namespaces and counters that are not declared."`
	TokenRetention time.Duration `default:"10m" placeholder:"TIME" help:"How long tokens are remembered (${default})."`
	Requirepass    string        `env:"TALLY_REQUIREPASS" placeholder:"TEXT" help:"The password clients must give; better given in ${env}, where other users do not see it."`
	Insecure       bool          `help:"Serve others than this machine without a password."`
	MaxClients     int           `default:"10000" placeholder:"N" help:"Connections at once (${default})."`
	IdleTimeout    time.Duration `default:"0" placeholder:"TIME" help:"Close a connection that sends nothing for so long; 0: never."`
	Grace          time.Duration `default:"10s" placeholder:"TIME" help:"How long a stop waits for clients to read their answers (${default})."`
	LogLevel       slog.Level    `default:"info" placeholder:"LEVEL" help:"debug, info, warn or error (${default})."`
	LogFormat      string        `enum:"text,json" default:"text" help:"text or json (${default})."`
}

// Help is shown by --help below the flags.
func (serveVerb) Help() string {
	return "SIGINT or SIGTERM stops it: what was taken is answered and written, then the process ends. A second signal ends it at once;" +
		" nothing acknowledged is lost then either."
}

func (v *serveVerb) Run(ctx context.Context, std streams) error {
	log := v.logger(std.err)
	sync, err := v.check()
	if err != nil {
		return err
	}
	ctx, shutdown := context.WithCancel(ctx)
	defer shutdown()

	ln, err := net.Listen("tcp", v.Resp) // before the data, so that a taken port is told at once
	if err != nil {
		return fmt.Errorf("cannot serve at %s: %w; say another address with --resp: %w", v.Resp, err, counter.ErrUnavailable)
	}
	e, err := engine.Open(v.Data, engine.Options{
		Sync:           sync,
		SyncInterval:   v.SyncInterval,
		Memory:         int64(v.Memory),
		ClosedSchema:   v.ClosedSchema,
		TokenRetention: v.TokenRetention,
		Logger:         log,
	})
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	logOpened(log, v.Data, e.Stats())
	s, err := resp.New(e, resp.Options{
		Password:       v.Requirepass,
		Sync:           sync,
		Version:        version,
		Shutdown:       shutdown,
		ConnectionsMax: v.MaxClients,
		IdleTimeout:    v.IdleTimeout,
		Logger:         log,
	})
	if err != nil {
		return errors.Join(err, ln.Close(), e.Close())
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	log.Info("serving the Redis protocol", "addr", ln.Addr().String(), "sync", v.Sync, "password", v.Requirepass != "")

	select {
	case err = <-served: // the listener failed
	case <-ctx.Done():
		log.Info("stopping; a second signal ends at once")
	}
	return errors.Join(err, v.stop(log, s, e))
}

// stop answers what was taken, writes everything and gives the directory back.
func (v *serveVerb) stop(log *slog.Logger, s *resp.Server, e *engine.Engine) error {
	begin := time.Now()
	grace, cancel := context.WithTimeout(context.Background(), v.Grace)
	defer cancel()
	if err := s.Close(grace); err != nil {
		log.Warn("connections were cut: they did not read their answers in time", "grace", v.Grace)
	}
	if err := e.Close(); err != nil {
		return err
	}
	log.Info("stopped", "took", time.Since(begin).Round(time.Millisecond))
	return nil
}

// check reports every bad setting at once.
func (v *serveVerb) check() (engine.SyncMode, error) {
	var problems []error
	sync := map[string]engine.SyncMode{"always": engine.SyncAlways, "interval": engine.SyncInterval, "never": engine.SyncNever}[v.Sync]
	host, _, err := net.SplitHostPort(v.Resp)
	switch {
	case err != nil:
		problems = append(problems, fmt.Errorf("--resp %q is not HOST:PORT", v.Resp))
	case !loopback(host) && v.Requirepass == "" && !v.Insecure:
		problems = append(problems, fmt.Errorf("--resp %s lets other machines in: set a password with --requirepass, or say --insecure", v.Resp))
	}
	if v.Memory != 0 && v.Memory < engine.MemoryMin {
		problems = append(problems, fmt.Errorf("--memory %s is too little, the least is %s", bytesText(int64(v.Memory)), bytesText(engine.MemoryMin)))
	}
	if v.SyncInterval < time.Millisecond {
		problems = append(problems, fmt.Errorf("--sync-interval %s is too short, the least is 1ms", v.SyncInterval))
	}
	if v.TokenRetention < time.Second {
		problems = append(problems, fmt.Errorf("--token-retention %s is too short, the least is 1s", v.TokenRetention))
	}
	if v.MaxClients < 1 || v.MaxClients > 1<<20 {
		problems = append(problems, fmt.Errorf("--max-clients %d is not 1 to %d", v.MaxClients, 1<<20))
	}
	if v.IdleTimeout < 0 || v.Grace < 0 {
		problems = append(problems, errors.New("--idle-timeout and --grace may not be negative"))
	}
	if len(problems) == 0 {
		return sync, nil
	}
	return sync, usage("%w", errors.Join(problems...))
}

// loopback tells whether host is reached from this machine only.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (v *serveVerb) logger(w io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: v.LogLevel}
	if v.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

func logOpened(log *slog.Logger, dir string, s engine.Stats) {
	log.Info("opened the data directory", "dir", dir,
		"objects", s.Objects, "namespaces", s.Namespaces, "pages", s.PagesTotal,
		"memory_budget", bytesText(s.MemoryBudget),
		"replayed_records", s.RecoveredRecords, "replayed", bytesText(s.RecoveredBytes),
		"took", (time.Duration(s.RecoveryMillis * float64(time.Millisecond))).Round(10*time.Microsecond))
}
