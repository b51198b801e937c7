package resp

import (
	"slices"
	"strings"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// flags say how a command may be used.
type flags uint32

const (
	write     flags = 1 << iota // changes counters
	read                        // reads counters
	fast                        // constant time
	admin                       // for operators
	noAuth                      // allowed before AUTH
	noMulti                     // refused inside MULTI
	immediate                   // never queued: it ends or steers a transaction
	stateful                    // changes the connection: its reply and its effect cannot be parted
	blocking                    // may wait for the disk
	everyKey                    // touches all objects
)

// flagNames is what COMMAND INFO calls the flags that Redis has too.
var flagNames = []struct {
	flag flags
	name string
}{
	{write, "write"}, {read, "readonly"}, {fast, "fast"}, {admin, "admin"},
	{noAuth, "no_auth"}, {noMulti, "no_multi"}, {blocking, "blocking"},
}

// keySpec says which arguments are keys: from first to last (negative: counted
// from the end) by step. Zero: none.
type keySpec struct{ first, last, step int }

var (
	oneKey   = keySpec{1, 1, 1}
	twoKeys  = keySpec{1, 2, 1}
	allKeys  = keySpec{1, -1, 1}
	evenKeys = keySpec{1, -1, 2}
)

// each calls visit with the keys of a request.
func (s keySpec) each(args [][]byte, visit func(key []byte)) {
	last := s.last
	if last < 0 {
		last += len(args)
	}
	for i := s.first; s.first > 0 && i <= last && i < len(args); i += s.step {
		visit(args[i])
	}
}

// A command is one row of the table. It has a tx when it is about counters, and
// then may be used inside MULTI; it has a run when it is about the connection,
// the server or the engine as a whole. Either may return an error instead of
// having written a reply; a tx has then changed nothing.
type command struct {
	name    string // lower case, as COMMAND shows it
	arity   int    // number of arguments with the name; negative: at least
	flags   flags
	keys    keySpec
	group   string
	since   string // the Redis version that brought it; of Tally for its own
	syntax  string // arguments
	summary string

	tx  func(c *conn, tx *engine.Tx, args [][]byte) error
	run func(c *conn, args [][]byte) error

	// hot does what tx does for a request of its own, without a transaction.
	hot func(c *conn, args [][]byte) error

	// increment reads a request that adds to one counter of args[1], for gather.
	increment increment

	// slowFrom is the number of arguments from which a request may take long
	// enough to be in the way of other connections; 0: never.
	slowFrom int

	// keysOf replaces keys where their place depends on other arguments.
	keysOf func(args [][]byte, visit func(key []byte)) error
}

func (cmd *command) arityOK(n int) bool {
	if cmd.arity >= 0 {
		return n == cmd.arity
	}
	return n >= -cmd.arity
}

func (cmd *command) has(f flags) bool { return cmd.flags&f != 0 }

func (cmd *command) slow(n int) bool { return cmd.slowFrom > 0 && n >= cmd.slowFrom }

// always is the slowFrom of commands that are slow whatever their arguments.
const always = 1

// commandNameMax is above the length of every name in the table.
const commandNameMax = 32

// commands is the table: everything that is served.
var commands = map[string]*command{}

func init() {
	for _, family := range [][]command{
		valueCommands, hashCommands, keyCommands, expireCommands, hashExpireCommands, scanCommands,
		multiCommands, connectionCommands, serverCommands, clientCommands, tallyCommands,
	} {
		for i := range family {
			cmd := &family[i]
			if commands[cmd.name] != nil || len(cmd.name) > commandNameMax {
				panic("resp: command " + cmd.name + " is twice in the table, or too long")
			}
			commands[cmd.name] = cmd
		}
	}
}

// find looks a command up; nil when it is not served.
func find(name []byte) *command {
	var lower [commandNameMax]byte
	if len(name) > len(lower) {
		return nil
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	return commands[string(lower[:len(name)])]
}

// sorted lists the table by name.
func sorted() []*command {
	all := make([]*command, 0, len(commands))
	for _, cmd := range commands {
		all = append(all, cmd)
	}
	slices.SortFunc(all, func(a, b *command) int { return strings.Compare(a.name, b.name) })
	return all
}

// is tells whether arg is the keyword word (upper case), in any case.
func is(arg []byte, word string) bool {
	if len(arg) != len(word) {
		return false
	}
	for i := range arg {
		c := arg[i]
		if c >= 'a' && c <= 'z' {
			c &^= 0x20
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// parseInt reads a whole number in the one form Redis takes: no plus sign, no
// leading zeros, no blanks.
func parseInt(b []byte) (int64, bool) {
	digits := b
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || (digits[0] == '0' && (negative || len(digits) > 1)) {
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		d := c - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	switch {
	case negative && n <= 1<<63:
		return -int64(n), true
	case !negative && n < 1<<63:
		return int64(n), true
	}
	return 0, false
}

// integer reads an argument that must be a whole number.
func integer(b []byte) (int64, error) {
	n, ok := parseInt(b)
	if !ok {
		return 0, errNotInteger
	}
	return n, nil
}

// parseKey reads a key. It is valid as long as b is.
func parseKey(b []byte) (counter.Key, error) { return counter.ParseKey(view(b)) }
