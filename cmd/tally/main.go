// Command tally is the counter service and the tools around it. This package
// holds verbs, wiring and exit codes; what they do stands in the packages below.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/tally-counter/tally/counter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are where a verb reads and writes.
type streams struct {
	in       *os.File
	out, err *os.File
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, args []string, std streams) int {
	var cli commandLine
	exited := -1
	parser, err := kong.New(&cli,
		kong.Name("tally"),
		kong.Description("Tally counts: exact, durable, safe to retry. `tally serve` starts a server that any Redis client can use; the other verbs talk to it."+
			"\n\nExit codes: "+exitCodeHelp()),
		kong.Writers(std.out, std.err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(std),
	)
	if err != nil {
		panic(err) // a mistake in the struct of flags
	}
	parsed, err := parser.Parse(shieldNumbers(args))
	if exited >= 0 { // --help printed itself
		return exited
	}
	if err != nil {
		fmt.Fprintf(std.err, "tally: %s\nrun `tally --help` or `tally VERB --help` for what there is\n", err)
		return exitUsage
	}
	if err := parsed.Run(parser.Model); err != nil {
		report(std.err, err)
		return exitCode(err)
	}
	return exitOK
}

// report prints err once, for a person.
func report(w io.Writer, err error) {
	fmt.Fprintf(w, "tally: %s\n", errorText(err))
}

// usage is a mistake in the command line that only a verb can see.
func usage(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, counter.ErrInvalid)...)
}
