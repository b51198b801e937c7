package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

type completionVerb struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown by --help below the flags.
func (completionVerb) Help() string {
	return "bash: source <(tally completion bash). zsh: source <(tally completion zsh). fish: tally completion fish | source."
}

// completionScripts ask `tally complete` for candidates, so that they need not
// change with the flags. No candidate: the shell completes file names.
var completionScripts = map[string]string{
	"bash": `_tally() {
  COMPREPLY=($(tally complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _tally tally
`,
	"zsh": `_tally() {
  local -a candidates
  candidates=(${(f)"$(tally complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#candidates )); then compadd -- $candidates; else _files; fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
compdef _tally tally
`,
	"fish": `function __tally_complete
  set -l words (commandline -opc) (commandline -ct)
  tally complete -- $words[2..-1] 2>/dev/null
end
complete -c tally -a '(__tally_complete)'
`,
}

func (v *completionVerb) Run(std streams) error {
	_, err := fmt.Fprint(std.out, completionScripts[v.Shell])
	return err
}

type completeVerb struct {
	Words []string `arg:"" optional:""`
}

func (v *completeVerb) Run(std streams, app *kong.Application) error {
	for _, c := range complete(app.Node, v.Words) {
		if _, err := fmt.Fprintln(std.out, c); err != nil {
			return err
		}
	}
	return nil
}

// complete lists what the last word may become, given those before it.
func complete(node *kong.Node, words []string) (candidates []string) {
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
		words = words[:len(words)-1]
	}
	var flag *kong.Flag // that still wants its value
	for _, w := range words {
		switch {
		case flag != nil:
			flag = nil
		case strings.HasPrefix(w, "--"):
			if f := flagNamed(node, w[2:]); f != nil && !f.IsBool() {
				flag = f
			}
		default:
			for _, child := range node.Children {
				if child.Name == w {
					node = child
					break
				}
			}
		}
	}
	add := func(s string) {
		if strings.HasPrefix(s, last) && s != "" {
			candidates = append(candidates, s)
		}
	}
	switch {
	case flag != nil:
		for _, s := range strings.Split(flag.Enum, ",") {
			add(s)
		}
	case strings.HasPrefix(last, "-"):
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				add("--" + f.Name)
			}
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				add(child.Name)
			}
		}
		for _, arg := range node.Positional {
			for _, s := range strings.Split(arg.Enum, ",") {
				add(s)
			}
		}
	}
	return candidates
}

func flagNamed(node *kong.Node, name string) *kong.Flag {
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if f.Name == name {
				return f
			}
		}
	}
	return nil
}
