package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tally-counter/tally/counter"
)

// The exit codes. 0 is success.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRefused     = 3
	exitUnavailable = 4
	exitCorrupt     = 5
	exitLocked      = 6
	exitUnknown     = 7
	exitInterrupted = 130
)

// exitMeanings says what each code means, in the words of the help.
var exitMeanings = []struct {
	code    int
	meaning string
}{
	{exitOK, "done"},
	{exitFailed, "failed otherwise"},
	{exitUsage, "the request is wrong"},
	{exitRefused, "not found, or refused by a rule; nothing changed"},
	{exitUnavailable, "no server, or it is too busy or cannot write; nothing changed, try again"},
	{exitCorrupt, "stored bytes are damaged"},
	{exitLocked, "another process holds the data directory"},
	{exitUnknown, "it may or may not have been applied"},
	{exitInterrupted, "interrupted"},
}

// exitCodes gives every kind of error its code.
var exitCodes = []struct {
	kind error
	code int
}{
	{counter.ErrUnknown, exitUnknown}, // first: an error of two kinds must not promise that nothing changed
	{counter.ErrInvalid, exitUsage},
	{counter.ErrNotFound, exitRefused},
	{counter.ErrExists, exitRefused},
	{counter.ErrOverflow, exitRefused},
	{counter.ErrBounds, exitRefused},
	{counter.ErrConflict, exitRefused},
	{counter.ErrTooOld, exitRefused},
	{counter.ErrFenced, exitRefused},
	{counter.ErrGap, exitRefused},
	{counter.ErrReadOnly, exitRefused},
	{counter.ErrBusy, exitUnavailable},
	{counter.ErrUnavailable, exitUnavailable},
	{counter.ErrClosed, exitUnavailable},
	{counter.ErrCorrupt, exitCorrupt},
	{counter.ErrLocked, exitLocked},
}

func exitCode(err error) int {
	for _, e := range exitCodes {
		if errors.Is(err, e.kind) {
			return e.code
		}
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	return exitFailed
}

func exitCodeHelp() string {
	var parts []string
	for _, m := range exitMeanings {
		parts = append(parts, fmt.Sprintf("%d %s", m.code, m.meaning))
	}
	return strings.Join(parts, "; ") + "."
}

// errorText is err without the kind at its end where the text says as much.
func errorText(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	return strings.TrimSuffix(err.Error(), ": "+counter.ErrInvalid.Error())
}
