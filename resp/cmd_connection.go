package resp

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"
)

// connectionCommands are about the connection they come over.
var connectionCommands = []command{
	{name: "hello", arity: -1, flags: fast | noAuth | noMulti | stateful, group: "connection", since: "6.0.0",
		syntax:  "[protover [AUTH username password] [SETNAME clientname]]",
		summary: "Chooses the protocol version, 2 or 3, and introduces both sides.", run: hello},
	{name: "auth", arity: -2, flags: fast | noAuth | noMulti | stateful, group: "connection", since: "1.0.0", syntax: "[username] password",
		summary: "Authenticates the connection.", run: auth},
	{name: "ping", arity: -1, flags: fast, group: "connection", since: "1.0.0", syntax: "[message]",
		summary: "Answers PONG, or the message.", run: ping},
	{name: "echo", arity: 2, flags: fast, group: "connection", since: "1.0.0", syntax: "message",
		summary: "Answers the message.", run: echo},
	{name: "quit", arity: -1, flags: fast | noAuth | immediate | stateful, group: "connection", since: "1.0.0",
		summary: "Ends the connection once everything is answered.", run: quit},
	{name: "reset", arity: 1, flags: fast | noAuth | immediate | stateful, group: "connection", since: "6.2.0",
		summary: "Puts the connection back into the state of a new one.", run: reset},
	{name: "select", arity: 2, flags: fast, group: "connection", since: "1.0.0", syntax: "0",
		summary: "Accepts database 0, the only one.", run: selectDB},
}

func ping(c *conn, args [][]byte) error {
	switch len(args) {
	case 1:
		c.w.simple("PONG")
	case 2:
		c.w.bulk(args[1])
	default:
		return errorf("ERR wrong number of arguments for 'ping' command")
	}
	return nil
}

func echo(c *conn, args [][]byte) error {
	c.w.bulk(args[1])
	return nil
}

func quit(c *conn, _ [][]byte) error {
	c.closing = true
	c.w.ok()
	return nil
}

func reset(c *conn, _ [][]byte) error {
	c.multi.discard(c)
	c.silent = replyOn
	c.setResp3(false)
	c.info.setName("")
	c.setAuthenticated(c.server.opts.Password == "")
	c.w.simple("RESET")
	return nil
}

func selectDB(c *conn, args [][]byte) error {
	n, err := integer(args[1])
	if err != nil {
		return err
	}
	if n != 0 {
		return replyError("ERR DB index is out of range")
	}
	c.w.ok()
	return nil
}

func (c *conn) setAuthenticated(yes bool) {
	c.authenticated = yes
	c.in.limits = &unauthenticated
	if yes {
		c.in.limits = &c.server.limits
	}
}

// login checks a user name and password. There is one user, "default".
func (c *conn) login(user, password []byte) error {
	want, got := sha256.Sum256([]byte(c.server.opts.Password)), sha256.Sum256(password)
	right := subtle.ConstantTimeCompare(want[:], got[:]) == 1
	switch {
	case string(user) != "default":
		return errWrongPass
	case c.server.opts.Password == "" || right: // without a password every one is right, as in Redis
		c.setAuthenticated(true)
		return nil
	}
	c.server.stats.authFailures.Add(1)
	return errWrongPass
}

func auth(c *conn, args [][]byte) error {
	if len(args) > 3 {
		return errSyntax
	}
	user, password := []byte("default"), args[1]
	if len(args) == 3 {
		user, password = args[1], args[2]
	} else if c.server.opts.Password == "" {
		return replyError("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
	}
	if err := c.login(user, password); err != nil {
		return err
	}
	c.w.ok()
	return nil
}

func hello(c *conn, args [][]byte) error {
	resp3 := c.w.resp3
	if len(args) > 1 {
		version, ok := parseInt(args[1])
		if !ok {
			return replyError("ERR Protocol version is not an integer or out of range")
		}
		if version != 2 && version != 3 {
			return replyError("NOPROTO unsupported protocol version")
		}
		resp3 = version == 3
	}
	var user, password, name []byte
	var named bool
	for i := 2; i < len(args); {
		switch {
		case is(args[i], "AUTH") && i+2 < len(args):
			user, password = args[i+1], args[i+2]
			i += 3
		case is(args[i], "SETNAME") && i+1 < len(args):
			name, named = args[i+1], true
			i += 2
		default:
			return errorf("ERR Syntax error in HELLO option '%.128s'", args[i])
		}
	}
	if named {
		if err := checkClientName(name); err != nil {
			return err
		}
	}
	if user != nil {
		if err := c.login(user, password); err != nil {
			return err
		}
	}
	if !c.authenticated {
		return replyError("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> " +
			"option can be used to authenticate the client and select the RESP protocol version at the same time")
	}
	if named {
		c.info.setName(string(name))
	}
	c.setResp3(resp3)
	c.introduce()
	return nil
}

// introduce is HELLO's answer.
func (c *conn) introduce() {
	c.w.dict(8)
	for _, field := range [][2]string{{"server", "tally"}, {"version", redisVersion}, {"tally_version", c.server.opts.Version}} {
		c.w.bulkString(field[0])
		c.w.bulkString(field[1])
	}
	c.w.bulkString("proto")
	if c.w.resp3 {
		c.w.int(3)
	} else {
		c.w.int(2)
	}
	c.w.bulkString("id")
	c.w.int(int64(c.id))
	c.w.bulkString("mode")
	c.w.bulkString("standalone")
	c.w.bulkString("role")
	c.w.bulkString("master")
	c.w.bulkString("modules")
	c.w.array(0)
}

// checkClientName holds a client's name to what CLIENT LIST can show.
func checkClientName(name []byte) error {
	if len(name) > 256 {
		return replyError("ERR a client's name has 256 bytes at most")
	}
	if strings.IndexFunc(string(name), func(r rune) bool { return r < '!' || r > '~' }) >= 0 {
		return replyError("ERR Client names cannot contain spaces, newlines or special characters.")
	}
	return nil
}
