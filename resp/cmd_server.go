package resp

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
)

// redisVersion is the Redis whose commands and replies are served; clients
// choose their features by it.
const redisVersion = "7.4.0"

// serverCommands are for operators and tools.
var serverCommands = []command{
	{name: "command", arity: -1, group: "server", since: "2.8.13", syntax: "[COUNT | LIST [FILTERBY PATTERN pattern] | INFO [name ...] | DOCS [name ...] | GETKEYS command [arg ...] | HELP]",
		summary: "Describes the commands served.", run: commandCommand},
	{name: "config", arity: -2, flags: admin | noMulti, group: "server", since: "2.0.0", syntax: "GET pattern [pattern ...] | RESETSTAT | HELP",
		summary: "Answers the settings that tools ask for; they are set by the server's flags.", run: config},
	{name: "info", arity: -1, flags: noMulti, group: "server", since: "1.0.0", syntax: "[section [section ...]]",
		summary: "Answers the server's figures as text.", run: infoCommand},
	{name: "memory", arity: -2, flags: read | noMulti, group: "server", since: "4.0.0", syntax: "USAGE key [SAMPLES count] | STATS | DOCTOR | PURGE | HELP",
		summary: "Answers what memory is used for.", run: memory,
		keysOf: func(args [][]byte, visit func([]byte)) error {
			if len(args) > 2 && is(args[1], "USAGE") {
				visit(args[2])
			}
			return nil
		}},
	{name: "time", arity: 1, flags: fast, group: "server", since: "2.6.0", summary: "Answers the server's time: unix seconds and microseconds.", run: timeCommand},
	{name: "wait", arity: 3, flags: blocking | noMulti, group: "generic", since: "3.0.0", syntax: "numreplicas timeout",
		summary: "Answers 0: there are no replicas.", run: wait},
	{name: "waitaof", arity: 4, flags: blocking | noMulti, group: "generic", since: "7.2.0", syntax: "numlocal numreplicas timeout",
		summary: "Answers 1 and 0 once everything this connection wrote is on disk: no replica has it.", run: waitAOF},
	{name: "role", arity: 1, flags: fast, group: "server", since: "2.8.12", summary: "Answers master, without replicas.", run: role},
	{name: "save", arity: 1, flags: admin | noMulti, group: "server", since: "1.0.0", slowFrom: always,
		summary: "Writes a checkpoint.", run: save},
	{name: "bgsave", arity: -1, flags: admin | noMulti, group: "server", since: "1.0.0", syntax: "[SCHEDULE]",
		summary: "Starts a checkpoint.", run: backgroundSave("Background saving started")},
	{name: "bgrewriteaof", arity: 1, flags: admin | noMulti, group: "server", since: "1.0.0",
		summary: "Starts a checkpoint, after which old journal segments go.", run: backgroundSave("Background append only file rewriting started")},
	{name: "lastsave", arity: 1, flags: admin | fast, group: "server", since: "1.0.0", summary: "Answers the unix time of the last checkpoint that was asked for.", run: lastSave},
	{name: "shutdown", arity: -1, flags: admin | noMulti, group: "server", since: "1.0.0", syntax: "[NOSAVE | SAVE] [NOW] [FORCE]",
		summary: "Stops the server; from this machine only.", run: shutdown},
	{name: "slowlog", arity: -2, flags: admin, group: "server", since: "2.2.12", syntax: "GET [count] | LEN | RESET | HELP",
		summary: "Answers an empty log: Tally keeps none.", run: slowlog},
	{name: "latency", arity: -2, flags: admin, group: "server", since: "2.8.13", syntax: "LATEST | HISTORY event | RESET [event ...] | DOCTOR | HELP",
		summary: "Answers no events: Tally keeps none.", run: latency},
	{name: "cluster", arity: -2, group: "cluster", since: "3.0.0", syntax: "subcommand", summary: "Refused: this is no Redis Cluster node.", run: cluster},
	{name: "acl", arity: -2, flags: admin, group: "server", since: "6.0.0", syntax: "WHOAMI | USERS | HELP", summary: "Answers the one user, default.", run: acl},
}

func commandCommand(c *conn, args [][]byte) error {
	if len(args) == 1 {
		c.describeCommands(sorted())
		return nil
	}
	switch sub := upper(args[1]); {
	case sub == "COUNT" && len(args) == 2:
		c.w.int(int64(len(commands)))
	case sub == "LIST":
		return c.listCommands(args)
	case sub == "INFO" && len(args) == 2:
		c.describeCommands(sorted())
	case sub == "INFO":
		named := make([]*command, len(args)-2)
		for i, name := range args[2:] {
			named[i] = find(name)
		}
		c.describeCommands(named)
	case sub == "DOCS":
		c.documentCommands(args[2:])
	case sub == "GETKEYS" && len(args) > 2:
		return c.keysOfRequest(args[2:])
	case sub == "HELP" && len(args) == 2:
		c.help("COMMAND", "COUNT", "LIST [FILTERBY PATTERN pattern]", "INFO [name ...]", "DOCS [name ...]", "GETKEYS command [arg ...]")
	default:
		return badSubcommand("COMMAND", args[1])
	}
	return nil
}

func (c *conn) describeCommands(all []*command) {
	c.w.array(len(all))
	for _, cmd := range all {
		if cmd == nil {
			c.w.nullArray()
			continue
		}
		c.w.array(10)
		c.w.bulkString(cmd.name)
		c.w.int(int64(cmd.arity))
		var names []string
		for _, f := range flagNames {
			if cmd.has(f.flag) {
				names = append(names, f.name)
			}
		}
		if cmd.keysOf != nil {
			names = append(names, "movablekeys")
		}
		c.w.set(len(names))
		for _, name := range names {
			c.w.simple(name)
		}
		c.w.int(int64(cmd.keys.first))
		c.w.int(int64(cmd.keys.last))
		c.w.int(int64(cmd.keys.step))
		c.w.set(0)   // ACL categories
		c.w.array(0) // tips
		c.w.array(0) // key specifications
		c.w.array(0) // subcommands
	}
}

func (c *conn) listCommands(args [][]byte) error {
	pattern := "*"
	if len(args) > 2 {
		if len(args) != 5 || !is(args[2], "FILTERBY") || !is(args[3], "PATTERN") {
			return errSyntax
		}
		pattern = strings.ToLower(string(args[4]))
	}
	var names []string
	for _, cmd := range sorted() {
		if glob(pattern, cmd.name) {
			names = append(names, cmd.name)
		}
	}
	c.w.array(len(names))
	for _, name := range names {
		c.w.bulkString(name)
	}
	return nil
}

func (c *conn) documentCommands(names [][]byte) {
	var all []*command
	for _, name := range names {
		if cmd := find(name); cmd != nil {
			all = append(all, cmd)
		}
	}
	if len(names) == 0 {
		all = sorted()
	}
	c.w.dict(len(all))
	for _, cmd := range all {
		c.w.bulkString(cmd.name)
		c.w.dict(4)
		for _, field := range [][2]string{{"summary", cmd.summary}, {"since", cmd.since}, {"group", cmd.group}, {"syntax", strings.TrimSpace(strings.ToUpper(cmd.name) + " " + cmd.syntax)}} {
			c.w.bulkString(field[0])
			c.w.bulkString(field[1])
		}
	}
}

func (c *conn) keysOfRequest(args [][]byte) error {
	cmd := find(args[0])
	if cmd == nil {
		return replyError("ERR Invalid command specified")
	}
	if !cmd.arityOK(len(args)) {
		return replyError("ERR Invalid number of arguments specified for command")
	}
	var keys [][]byte
	visit := func(k []byte) { keys = append(keys, k) }
	if cmd.keysOf != nil {
		if err := cmd.keysOf(args, visit); err != nil {
			return err
		}
	} else {
		cmd.keys.each(args, visit)
	}
	if len(keys) == 0 {
		return replyError("ERR The command has no key arguments")
	}
	c.w.array(len(keys))
	for _, k := range keys {
		c.w.bulk(k)
	}
	return nil
}

func timeCommand(c *conn, _ [][]byte) error {
	now := time.Now().UnixMicro()
	c.w.array(2)
	c.w.bulkInt(now / 1e6)
	c.w.bulkInt(now % 1e6)
	return nil
}

// wait answers 0 at once: with no replicas a longer wait would not change it.
func wait(c *conn, args [][]byte) error {
	if _, err := integer(args[1]); err != nil {
		return err
	}
	if err := checkTimeout(args[2]); err != nil {
		return err
	}
	c.w.int(0)
	return nil
}

func checkTimeout(b []byte) error {
	ms, ok := parseInt(b)
	if !ok {
		return replyError("ERR timeout is not an integer or out of range")
	}
	if ms < 0 {
		return replyError("ERR timeout is negative")
	}
	return nil
}

// waitAOF needs no waiting of its own: its reply is held, like every other,
// until what this connection was answered before is on disk. In the sync modes
// interval and never nothing is promised, so it answers 0.
func waitAOF(c *conn, args [][]byte) error {
	if local, ok := parseInt(args[1]); !ok || local < 0 || local > 1 {
		return replyError("ERR value is out of range, must be between 0 and 1")
	}
	if replicas, ok := parseInt(args[2]); !ok || replicas < 0 {
		return replyError("ERR value is out of range, must be positive")
	}
	if err := checkTimeout(args[3]); err != nil {
		return err
	}
	local := int64(0)
	if c.server.opts.Sync == engine.SyncAlways {
		local = 1
	}
	c.pair(local, 0)
	return nil
}

func role(c *conn, _ [][]byte) error {
	c.w.array(3)
	c.w.bulkString("master")
	c.w.int(0)
	c.w.array(0)
	return nil
}

func save(c *conn, _ [][]byte) error {
	if err := c.server.checkpoint(); err != nil {
		return err
	}
	c.w.ok()
	return nil
}

func backgroundSave(started string) func(*conn, [][]byte) error {
	return func(c *conn, args [][]byte) error {
		if len(args) > 2 || (len(args) == 2 && !is(args[1], "SCHEDULE")) {
			return errSyntax
		}
		if !c.server.startCheckpoint() {
			return replyError("ERR Background save already in progress")
		}
		c.w.simple(started)
		return nil
	}
}

func lastSave(c *conn, _ [][]byte) error {
	c.w.int(c.server.lastSave.Load())
	return nil
}

func shutdown(c *conn, args [][]byte) error {
	for _, a := range args[1:] {
		if !is(a, "SAVE") && !is(a, "NOSAVE") && !is(a, "NOW") && !is(a, "FORCE") {
			return errSyntax
		}
	}
	switch {
	case !loopback(c.info.remote):
		return replyError("ERR SHUTDOWN is taken from this machine only; stop the process instead")
	case c.server.opts.Shutdown == nil:
		return replyError("ERR this server is part of another program, which has to stop it")
	}
	c.closing = true
	c.server.opts.Shutdown()
	return nil
}

// loopback tells whether an address is of this machine.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func slowlog(c *conn, args [][]byte) error {
	switch upper(args[1]) {
	case "GET":
		c.w.array(0)
	case "LEN":
		c.w.int(0)
	case "RESET":
		c.w.ok()
	case "HELP":
		c.help("SLOWLOG", "GET [count]", "LEN", "RESET")
	default:
		return badSubcommand("SLOWLOG", args[1])
	}
	return nil
}

func latency(c *conn, args [][]byte) error {
	switch upper(args[1]) {
	case "LATEST", "HISTORY":
		c.w.array(0)
	case "RESET":
		c.w.int(0)
	case "DOCTOR":
		c.w.text("Tally keeps no latency events. TALLY.STATS has the journal's fsync times; INFO has the totals.\n")
	case "HELP":
		c.help("LATENCY", "LATEST", "HISTORY event", "RESET [event ...]", "DOCTOR")
	default:
		return badSubcommand("LATENCY", args[1])
	}
	return nil
}

func cluster(*conn, [][]byte) error {
	return replyError("ERR This instance has cluster support disabled")
}

func acl(c *conn, args [][]byte) error {
	switch upper(args[1]) {
	case "WHOAMI":
		c.w.bulkString("default")
	case "USERS":
		c.w.array(1)
		c.w.bulkString("default")
	case "HELP":
		c.help("ACL", "WHOAMI", "USERS")
	default:
		return replyError("ERR Tally has one user, default, and its password; it keeps no access lists")
	}
	return nil
}

func memory(c *conn, args [][]byte) error {
	switch sub := upper(args[1]); {
	case sub == "USAGE" && (len(args) == 3 || (len(args) == 5 && is(args[3], "SAMPLES"))):
		if len(args) == 5 {
			if n, err := integer(args[4]); err != nil || n < 0 {
				return errNotInteger
			}
		}
		k, err := parseKey(args[2])
		if err != nil {
			return err
		}
		n, ok, err := c.engine.ObjectBytes(k)
		if err != nil {
			return err
		}
		if ok {
			c.w.int(n)
		} else {
			c.w.null()
		}
	case sub == "STATS" && len(args) == 2:
		c.memoryStats()
	case sub == "DOCTOR" && len(args) == 2:
		c.w.text("Tally keeps counters in packed pages and drops cold ones over its budget; see bytes_per_object and pages_resident in TALLY.STATS.\n")
	case sub == "PURGE" && len(args) == 2: // nothing is held back that could be given up
		c.w.ok()
	case sub == "HELP" && len(args) == 2:
		c.help("MEMORY", "USAGE key [SAMPLES count]", "STATS", "DOCTOR", "PURGE")
	default:
		return badSubcommand("MEMORY", args[1])
	}
	return nil
}

// unserved says why a command of the Redis protocol is not there.
func unserved(args [][]byte) error {
	name := upper(args[0][:min(len(args[0]), 64)])
	why := "see TALLY.HELP for what it serves"
	for _, group := range unservedGroups {
		if strings.Contains(group.names, " "+name+" ") {
			why = group.why
			break
		}
	}
	return errorf("ERR unknown command '%.128s': Tally serves counters; %s", args[0], why)
}

// unservedGroups are commands that Redis has and Tally leaves out on purpose.
var unservedGroups = []struct{ names, why string }{
	{" APPEND GETRANGE SETRANGE SUBSTR GETBIT SETBIT BITCOUNT BITFIELD BITFIELD_RO BITOP BITPOS LCS ", "a value is a whole number, not text or bits"},
	{" LPUSH RPUSH LPUSHX RPUSHX LPOP RPOP LRANGE LLEN LINDEX LSET LREM LTRIM LINSERT LPOS LMOVE RPOPLPUSH LMPOP BLPOP BRPOP BLMOVE BLMPOP BRPOPLPUSH ", "it has no lists"},
	{" SADD SREM SMEMBERS SISMEMBER SMISMEMBER SCARD SPOP SRANDMEMBER SMOVE SINTER SINTERSTORE SINTERCARD SUNION SUNIONSTORE SDIFF SDIFFSTORE SSCAN ", "it has no sets"},
	{" ZADD ZREM ZINCRBY ZRANGE ZRANGESTORE ZRANGEBYSCORE ZREVRANGE ZREVRANGEBYSCORE ZRANGEBYLEX ZRANK ZREVRANK ZSCORE ZMSCORE ZCARD ZCOUNT ZPOPMIN ZPOPMAX BZPOPMIN BZPOPMAX ZSCAN ", "it has no sorted sets"},
	{" PFADD PFCOUNT PFMERGE ", "it counts totals; distinct counts are not served yet"},
	{" XADD XREAD XREADGROUP XRANGE XREVRANGE XLEN XDEL XTRIM XGROUP XACK XCLAIM XAUTOCLAIM XPENDING XINFO ", "it has no streams"},
	{" SUBSCRIBE UNSUBSCRIBE PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUNSUBSCRIBE PUBLISH SPUBLISH PUBSUB MONITOR ", "it has no channels"},
	{" EVAL EVALSHA EVAL_RO EVALSHA_RO SCRIPT FUNCTION FCALL FCALL_RO ", "it runs no scripts; INCREX, TALLY.ADD and MULTI do several things at once"},
	{" GEOADD GEOPOS GEODIST GEOHASH GEOSEARCH GEORADIUS ", "it has no places"},
	{" SORT SORT_RO DUMP RESTORE MIGRATE MOVE SWAPDB RANDOMKEY ", "use SCAN or TALLY.SCAN to read many objects"},
	{" REPLICAOF SLAVEOF SYNC PSYNC REPLCONF FAILOVER READONLY READWRITE ASKING ", "it has no replicas"},
	{" DEBUG MODULE ", "it takes neither debug commands nor modules"},
}

// checkpoint writes a checkpoint and notes the time.
func (s *Server) checkpoint() error {
	if err := s.engine.Checkpoint(); err != nil {
		return err
	}
	s.lastSave.Store(time.Now().Unix())
	return nil
}

// startCheckpoint has a checkpoint written beside everything else; false when one is.
func (s *Server) startCheckpoint() bool {
	if !s.saving.CompareAndSwap(false, true) {
		return false
	}
	s.tasks.Go(func() {
		defer s.saving.Store(false)
		if err := s.checkpoint(); err != nil && !errors.Is(err, counter.ErrClosed) {
			s.log.Error("checkpoint failed", "error", err)
		}
	})
	return true
}
