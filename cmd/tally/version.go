package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by release builds: -ldflags "-X main.version=1.2.3".
var version = ""

type versionVerb struct{ jsonFlag }

func (v *versionVerb) Run(std streams) error {
	ours, commit := version, "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		if ours == "" {
			ours = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = s.Value
			}
		}
	}
	if ours == "" {
		ours = "(devel)"
	}
	if v.JSON {
		return printJSON(std.out, map[string]string{"version": ours, "commit": commit, "go": runtime.Version()})
	}
	_, err := fmt.Fprintf(std.out, "tally %s, commit %s, %s %s/%s\n", ours, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
