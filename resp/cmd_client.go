package resp

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var clientCommands = []command{
	{name: "client", arity: -2, group: "connection", since: "2.4.0", flags: admin | stateful,
		syntax: "ID | INFO | LIST [ID id ...] | GETNAME | SETNAME name | SETINFO LIB-NAME name | SETINFO LIB-VER version |" +
			" KILL ip:port | KILL ID id | REPLY ON | REPLY OFF | REPLY SKIP | NO-EVICT ON | NO-EVICT OFF | NO-TOUCH ON | NO-TOUCH OFF | HELP",
		summary: "Names, lists and ends connections.", run: client},
}

// clientSubcommands by name; n is the number of arguments with CLIENT and the
// subcommand, negative: at least.
var clientSubcommands = map[string]struct {
	n   int
	run func(c *conn, args [][]byte) error
}{
	"ID":       {2, clientID},
	"INFO":     {2, clientInfo},
	"LIST":     {-2, clientList},
	"GETNAME":  {2, clientGetName},
	"SETNAME":  {3, clientSetName},
	"SETINFO":  {4, clientSetInfo},
	"KILL":     {-3, clientKill},
	"REPLY":    {3, clientReply},
	"NO-EVICT": {3, clientSwitch},
	"NO-TOUCH": {3, clientSwitch},
	"HELP":     {2, clientHelp},
}

func client(c *conn, args [][]byte) error {
	sub, ok := clientSubcommands[upper(args[1])]
	switch {
	case is(args[1], "TRACKING") || is(args[1], "CACHING"):
		return replyError("ERR Tally has no client-side caching")
	case is(args[1], "PAUSE"):
		return replyError("ERR Tally does not pause clients")
	case !ok || (sub.n >= 0 && len(args) != sub.n) || len(args) < -sub.n:
		return badSubcommand("CLIENT", args[1])
	}
	return sub.run(c, args)
}

func clientHelp(c *conn, _ [][]byte) error {
	c.help("CLIENT", strings.Split(c.cmd.syntax, " | ")...)
	return nil
}

func clientID(c *conn, _ [][]byte) error {
	c.w.int(int64(c.id))
	return nil
}

func clientInfo(c *conn, _ [][]byte) error {
	c.info.lastCommand.Store(c.cmd)
	c.w.text(c.describe())
	return nil
}

func clientList(c *conn, args [][]byte) error {
	var only map[uint64]bool
	switch {
	case len(args) > 3 && is(args[2], "ID"):
		only = map[uint64]bool{}
		for _, a := range args[3:] {
			id, ok := parseInt(a)
			if !ok || id < 1 {
				return replyError("ERR Invalid client ID")
			}
			only[uint64(id)] = true
		}
	case len(args) == 4 && is(args[2], "TYPE"):
		if !is(args[3], "NORMAL") { // there are no others
			only = map[uint64]bool{}
		}
	case len(args) > 2:
		return errSyntax
	}
	c.info.lastCommand.Store(c.cmd)
	var b strings.Builder
	for _, o := range c.server.connections() {
		if only == nil || only[o.id] {
			b.WriteString(o.describe())
		}
	}
	c.w.text(b.String())
	return nil
}

// describe is a connection's line of CLIENT LIST.
func (c *conn) describe() string {
	i := &c.info
	now := time.Now()
	cmd, protocol := "NULL", 2
	if last := i.lastCommand.Load(); last != nil {
		cmd = last.name
	}
	if i.resp3.Load() {
		protocol = 3
	}
	flag := "N"
	if i.queued.Load() >= 0 {
		flag = "x"
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s age=%d idle=%d flags=%s db=0 sub=0 psub=0 ssub=0 multi=%d cmd=%s user=default lib-name=%s lib-ver=%s resp=%d\n",
		c.id, i.remote, i.local, i.name, int64(now.Sub(i.created)/time.Second), int64(now.Sub(time.Unix(0, i.lastActive.Load()))/time.Second),
		flag, i.queued.Load(), cmd, i.libName, i.libVersion, protocol)
}

func (i *info) setName(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.name = name
}

func clientGetName(c *conn, _ [][]byte) error {
	c.info.mu.Lock()
	name := c.info.name
	c.info.mu.Unlock()
	if name == "" {
		c.w.null()
	} else {
		c.w.bulkString(name)
	}
	return nil
}

func clientSetName(c *conn, args [][]byte) error {
	if err := checkClientName(args[2]); err != nil {
		return err
	}
	c.info.setName(string(args[2]))
	c.w.ok()
	return nil
}

func clientSetInfo(c *conn, args [][]byte) error {
	if checkClientName(args[3]) != nil {
		return errorf("ERR %.32s cannot contain spaces, newlines or special characters.", bytes.ToLower(args[2]))
	}
	c.info.mu.Lock()
	defer c.info.mu.Unlock()
	switch {
	case is(args[2], "LIB-NAME"):
		c.info.libName = string(args[3])
	case is(args[2], "LIB-VER"):
		c.info.libVersion = string(args[3])
	default:
		return errorf("ERR Unrecognized option '%.128s'", args[2])
	}
	c.w.ok()
	return nil
}

// clientKill ends connections: KILL ip:port, or filters that must all hold.
func clientKill(c *conn, args [][]byte) error {
	if len(args) == 3 {
		for _, o := range c.server.connections() {
			if o.info.remote == string(args[2]) {
				c.kill(o)
				c.w.ok()
				return nil
			}
		}
		return replyError("ERR No such client")
	}
	if len(args)%2 != 0 {
		return errSyntax
	}
	match := func(*conn) bool { return true }
	skipMe := true
	for i := 2; i < len(args); i += 2 {
		before, value := match, string(args[i+1])
		switch {
		case is(args[i], "ID"):
			id, err := strconv.ParseUint(value, 10, 64)
			if err != nil || id == 0 {
				return replyError("ERR client-id should be greater than 0")
			}
			match = func(o *conn) bool { return before(o) && o.id == id }
		case is(args[i], "ADDR"):
			match = func(o *conn) bool { return before(o) && o.info.remote == value }
		case is(args[i], "LADDR"):
			match = func(o *conn) bool { return before(o) && o.info.local == value }
		case is(args[i], "TYPE"):
			match = func(o *conn) bool { return before(o) && strings.EqualFold(value, "normal") }
		case is(args[i], "USER"):
			match = func(o *conn) bool { return before(o) && value == "default" }
		case is(args[i], "SKIPME") && (is(args[i+1], "YES") || is(args[i+1], "NO")):
			skipMe = is(args[i+1], "YES")
		default:
			return errSyntax
		}
	}
	killed := int64(0)
	for _, o := range c.server.connections() {
		if match(o) && !(skipMe && o == c) {
			c.kill(o)
			killed++
		}
	}
	c.w.int(killed)
	return nil
}

// kill ends connection o: at once, or, when it is this one, after the reply.
func (c *conn) kill(o *conn) {
	if o == c {
		c.closing = true
		return
	}
	o.info.close()
}

func clientReply(c *conn, args [][]byte) error {
	switch {
	case is(args[2], "ON"):
		c.silent = replyOn
		c.w.ok()
	case is(args[2], "OFF"):
		c.silent = replyOff
	case is(args[2], "SKIP"):
		if c.silent == replyOn {
			c.silent = replySkipNext
		}
	default:
		return errSyntax
	}
	return nil
}

// clientSwitch accepts NO-EVICT and NO-TOUCH: neither would change anything,
// since connections are not evicted and reads keep no time.
func clientSwitch(c *conn, args [][]byte) error {
	if !is(args[2], "ON") && !is(args[2], "OFF") {
		return errSyntax
	}
	c.w.ok()
	return nil
}
