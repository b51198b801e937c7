package resp

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tally-counter/tally/engine"
)

// setting is one answer of CONFIG GET: what Redis tools ask for, in Redis' words.
type setting struct{ name, value string }

func (s *Server) settings() []setting {
	fsync := map[engine.SyncMode]string{engine.SyncAlways: "always", engine.SyncInterval: "everysec", engine.SyncNever: "no"}
	return []setting{
		{"appendfsync", fsync[s.opts.Sync]},
		{"appendonly", "yes"}, // every write is in the journal
		{"databases", "1"},
		{"maxclients", strconv.Itoa(s.opts.ConnectionsMax)},
		{"maxmemory", "0"}, // over its budget the engine drops cold pages, never data
		{"maxmemory-policy", "noeviction"},
		{"proto-max-bulk-len", strconv.Itoa(s.limits.bulk)},
		{"save", ""},
		{"timeout", strconv.Itoa(int(s.opts.IdleTimeout.Seconds()))},
	}
}

func config(c *conn, args [][]byte) error {
	switch sub := upper(args[1]); {
	case sub == "GET" && len(args) > 2:
		var found []setting
		for _, s := range c.server.settings() {
			if slices.ContainsFunc(args[2:], func(p []byte) bool { return glob(strings.ToLower(string(p)), s.name) }) {
				found = append(found, s)
			}
		}
		c.w.dict(len(found))
		for _, s := range found {
			c.w.bulkString(s.name)
			c.w.bulkString(s.value)
		}
	case sub == "SET":
		return replyError("ERR settings are given when the server starts, by its flags; see tally serve --help")
	case sub == "REWRITE":
		return replyError("ERR The server is running without a config file")
	case sub == "RESETSTAT" && len(args) == 2:
		c.server.stats.reset()
		c.w.ok()
	case sub == "HELP" && len(args) == 2:
		c.help("CONFIG", "GET pattern [pattern ...]", "RESETSTAT")
	default:
		return badSubcommand("CONFIG", args[1])
	}
	return nil
}
