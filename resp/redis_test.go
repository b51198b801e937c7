package resp

import (
	"strings"
	"testing"
)

// A comparison is one command that Tally and a real Redis are both given.
type comparison struct {
	command string // words; "" is an empty one
	sorted  int    // the reply's order means nothing: sort it in groups of so many
	ours    string // what Tally answers where that differs on purpose
	why     string
}

// comparisons are run in order on one connection to each server, so later ones
// see what earlier ones did.
var comparisons = []comparison{
	// Counting.
	{command: "INCR a"}, {command: "incr a"}, {command: "INCRBY a 10"}, {command: "DECR a"}, {command: "DECRBY a 3"},
	{command: "GET a"}, {command: "GET none"}, {command: "INCRBY a -100"}, {command: "GET a"}, {command: "STRLEN a"}, {command: "STRLEN none"},
	{command: "INCRBY a x"}, {command: "INCRBY a 1.5"}, {command: "INCRBY a 007"}, {command: "INCRBY a +1"}, {command: "INCRBY a -0"},
	{command: "INCRBY a 9223372036854775808"}, {command: "INCRBY a"}, {command: "INCR"}, {command: "INCR a b"}, {command: "DECRBY a -9223372036854775808"},
	{command: "SET max 9223372036854775807"}, {command: "INCR max"}, {command: "GET max"}, {command: "DECRBY max -1"},
	{command: "SET min -9223372036854775808"}, {command: "DECR min"}, {command: "GET min"}, {command: "STRLEN min"},
	{command: "INCRBYFLOAT a 1.5", ours: `-ERR Tally counts whole numbers; use INCRBY or HINCRBY with an integer`, why: "no floats"},

	// Setting.
	{command: "SET s 5"}, {command: "SET s 6 NX"}, {command: "SET s 7 XX"}, {command: "SET fresh 7 XX"}, {command: "SET fresh 8 NX"}, {command: "GET fresh"},
	{command: "SET s 9 GET"}, {command: "SET s 10 NX GET"}, {command: "SET fresh2 1 GET"}, {command: "SET s 1 NX XX"}, {command: "SET s 1 EX"}, {command: "SET s 1 FOO"},
	{command: "SET s 1 EX 0"}, {command: "SET s 1 EX -1"}, {command: "SET s 1 EX abc"}, {command: "SET s 1 EX 9223372036854775807"}, {command: "SET s 1 EX 10 PX 10"},
	{command: "SET s 1 EX 100"}, {command: "TTL s"}, {command: "SET s 2 KEEPTTL"}, {command: "TTL s"}, {command: "SET s 3"}, {command: "TTL s"},
	{command: "SET s 1 PX 100000"}, {command: "TTL s"}, {command: "SET s 1 EXAT 33333333333"}, {command: "EXPIRETIME s"}, {command: "SET s 1 PXAT 33333333333000"}, {command: "PEXPIRETIME s"},
	{command: "SET s 1 EX 10 KEEPTTL"}, {command: "SET s 1 PXAT 1"}, {command: "GET s"},
	{command: "SET text hello", ours: "-ERR value is not an integer or out of range", why: "a value is a whole number"},
	{command: "SETNX nx 1"}, {command: "SETNX nx 2"}, {command: "GET nx"}, {command: "GETSET nx 3"}, {command: "GETSET nx2 3"}, {command: "GET nx"},
	{command: "SETEX se 100 5"}, {command: "TTL se"}, {command: "GET se"}, {command: "SETEX se 0 5"}, {command: "PSETEX se 100000 6"}, {command: "TTL se"}, {command: "PSETEX se -1 6"}, {command: "SETEX se x 6"},
	{command: "GETDEL se"}, {command: "GETDEL se"}, {command: "EXISTS se"},
	{command: "SET ge 1"}, {command: "GETEX ge EX 100"}, {command: "TTL ge"}, {command: "GETEX ge"}, {command: "TTL ge"}, {command: "GETEX ge PERSIST"}, {command: "TTL ge"},
	{command: "GETEX ge EX 0"}, {command: "GETEX ge FOO"}, {command: "GETEX none EX 10"}, {command: "GETEX ge PXAT 1"}, {command: "GET ge"},
	{command: "MSET m1 1 m2 2 m3 3"}, {command: "MGET m1 m2 none m3"}, {command: "MSET m1"}, {command: "MSET m1 1 m2"}, {command: "MSETNX m4 4 m1 9"}, {command: "EXISTS m4"}, {command: "MSETNX m4 4 m5 5"}, {command: "MGET m4 m5"}, {command: "MGET"},
	{command: "MSET m1 7 m1 8"}, {command: "GET m1"},

	// Hashes.
	{command: "HINCRBY h like 1"}, {command: "HINCRBY h like 5"}, {command: "HINCRBY h view -3"}, {command: "HGET h like"}, {command: "HGET h none"}, {command: "HGET none like"},
	{command: "HINCRBY h like x"}, {command: "HINCRBY h like"}, {command: "HINCRBY h like 9223372036854775807"}, {command: "HMGET h like none view"}, {command: "HMGET none a b"}, {command: "HMGET h"},
	{command: "HGETALL h", sorted: 2}, {command: "HGETALL none"}, {command: "HKEYS h", sorted: 1}, {command: "HVALS h", sorted: 1}, {command: "HLEN h"}, {command: "HLEN none"}, {command: "HKEYS none"}, {command: "HVALS none"},
	{command: "HEXISTS h like"}, {command: "HEXISTS h none"}, {command: "HEXISTS none a"}, {command: "HSTRLEN h view"}, {command: "HSTRLEN h none"},
	{command: "HSET h a 1 b 2"}, {command: "HSET h a 3 c 4"}, {command: "HSET h a"}, {command: "HSET h a 1 b"}, {command: "HMSET h d 1 e 2"}, {command: "HSETNX h a 9"}, {command: "HSETNX h f 9"}, {command: "HGET h f"}, {command: "HLEN h"},
	{command: "HSET h a x", ours: "-ERR value is not an integer or out of range", why: "a value is a whole number"},
	{command: "HDEL h a b none"}, {command: "HDEL h a"}, {command: "HDEL none a"}, {command: "HLEN h"}, {command: "HINCRBY h zero 0"}, {command: "HGET h zero"},
	{command: "HSCAN h 0", sorted: 0}, {command: "HSCAN h 0 MATCH l*"}, {command: "HSCAN h 0 MATCH l* COUNT 100"}, {command: "HSCAN none 0"}, {command: "HSCAN h x"}, {command: "HSCAN h 0 COUNT 0"}, {command: "HSCAN h 0 FOO"},
	{command: "HRANDFIELD none"}, {command: "HRANDFIELD none 3"}, {command: "HRANDFIELD h 100", sorted: 1}, {command: "HSET one x 1"}, {command: "HRANDFIELD one"}, {command: "HRANDFIELD one -3"}, {command: "HRANDFIELD one 1 WITHVALUES"}, {command: "HRANDFIELD one -2 WITHVALUES"}, {command: "HRANDFIELD one 0"}, {command: "HRANDFIELD one 1 FOO"}, {command: "HRANDFIELD one x"},
	{command: "HDEL one x"}, {command: "EXISTS one"}, {command: "TYPE one"},

	// Objects.
	{command: "TYPE a"}, {command: "TYPE h"}, {command: "TYPE none"}, {command: "EXISTS a h none a"}, {command: "TOUCH a none"}, {command: "DEL m1 m2 none"}, {command: "UNLINK m3"}, {command: "EXISTS m1 m2 m3"}, {command: "DEL"},
	{command: "RENAME none x"}, {command: "SET r1 5 EX 100"}, {command: "RENAME r1 r2"}, {command: "GET r2"}, {command: "TTL r2"}, {command: "EXISTS r1"}, {command: "RENAME r2 r2"}, {command: "SET r3 1"}, {command: "RENAMENX r2 r3"}, {command: "RENAMENX r2 r4"}, {command: "RENAMENX r4 r4"}, {command: "GET r4"}, {command: "RENAMENX none r4"},
	{command: "COPY r4 r5"}, {command: "COPY r4 r5"}, {command: "COPY r4 r5 REPLACE"}, {command: "GET r5"}, {command: "TTL r5"}, {command: "COPY none r5"}, {command: "COPY r4 r4"}, {command: "COPY r4 r6 FOO"}, {command: "COPY r4 r6 DB 0"}, {command: "COPY h h2"}, {command: "HGETALL h2", sorted: 2},
	{command: "HSET post:1 like 3 view 4"}, {command: "RENAME post:1 archive:1"}, {command: "HGETALL archive:1", sorted: 2},
	{command: "SET i 12345"}, {command: "OBJECT ENCODING i"}, {command: "OBJECT ENCODING none"}, {command: "OBJECT REFCOUNT none"}, {command: "OBJECT FREQ none"},
	{command: "OBJECT FREQ a", ours: "-ERR An LFU maxmemory policy is not selected, access frequency not tracked.", why: "Redis adds a hint about its configuration"},
	{command: "OBJECT ENCODING h", ours: `"page"`, why: "rows are packed into pages"},

	// Expiry.
	{command: "EXPIRE none 10"}, {command: "SET e 1"}, {command: "TTL e"}, {command: "PTTL e"}, {command: "EXPIRETIME e"}, {command: "PEXPIRETIME none"}, {command: "TTL none"}, {command: "PTTL none"},
	{command: "EXPIRE e 100"}, {command: "TTL e"}, {command: "EXPIRE e 200 NX"}, {command: "EXPIRE e 50 GT"}, {command: "EXPIRE e 200 GT"}, {command: "EXPIRE e 300 LT"}, {command: "EXPIRE e 100 LT"}, {command: "TTL e"}, {command: "EXPIRE e 100 XX"}, {command: "PERSIST e"}, {command: "PERSIST e"}, {command: "PERSIST none"},
	{command: "EXPIRE e 100 XX"}, {command: "EXPIRE e 100 GT"}, {command: "EXPIRE e 100 LT"}, {command: "TTL e"}, {command: "EXPIRE e 100 NX XX"}, {command: "EXPIRE e 100 GT LT"}, {command: "EXPIRE e 100 FOO"}, {command: "EXPIRE e x"}, {command: "EXPIRE e 9223372036854775807"}, {command: "EXPIRE e -9223372036854775808"}, {command: "PEXPIRE e 9223372036854775807"},
	{command: "PEXPIRE e 100000"}, {command: "TTL e"}, {command: "EXPIREAT e 33333333333"}, {command: "EXPIRETIME e"}, {command: "PEXPIREAT e 33333333333001"}, {command: "PEXPIRETIME e"}, {command: "EXPIRETIME e"},
	{command: "INCR e"}, {command: "PEXPIRETIME e"}, {command: "EXPIRE e -1"}, {command: "EXISTS e"}, {command: "SET e 1"}, {command: "EXPIREAT e 0"}, {command: "EXISTS e"}, {command: "SET e 1"}, {command: "PEXPIREAT e 1"}, {command: "GET e"},
	{command: "HSET he a 1"}, {command: "EXPIRE he 100"}, {command: "TTL he"}, {command: "HINCRBY he a 1"}, {command: "TTL he"}, {command: "PERSIST he"},

	// Transactions.
	{command: "MULTI"}, {command: "INCR t"}, {command: "HINCRBY th x 2"}, {command: "GET t"}, {command: "INCRBY t x"}, {command: "MSET t1 1 t2 2"}, {command: "MGET t t1 t2"}, {command: "HGETALL th"}, {command: "PING"}, {command: "TTL t"}, {command: "EXEC"},
	{command: "MULTI"}, {command: "MULTI"}, {command: "WATCH t"}, {command: "INCR t"}, {command: "EXEC"}, {command: "GET t"},
	{command: "MULTI"}, {command: "INCR"}, {command: "EXEC"}, {command: "EXEC"}, {command: "DISCARD"}, {command: "MULTI"}, {command: "INCR t"}, {command: "DISCARD"}, {command: "GET t"}, {command: "MULTI"}, {command: "EXEC"},
	{command: "WATCH t"}, {command: "INCR t"}, {command: "MULTI"}, {command: "INCR t"}, {command: "EXEC"}, {command: "GET t"}, {command: "WATCH t t1"}, {command: "MULTI"}, {command: "INCR t"}, {command: "EXEC"}, {command: "WATCH t"}, {command: "INCR t"}, {command: "UNWATCH"}, {command: "MULTI"}, {command: "GET t"}, {command: "EXEC"},
	{command: "WATCH fresh3"}, {command: "SET fresh3 1"}, {command: "MULTI"}, {command: "EXEC"}, {command: "WATCH t"}, {command: "DISCARD"}, {command: "MULTI"}, {command: "FLUSHALL"}, {command: "SET after 1"}, {command: "EXEC"}, {command: "DBSIZE"},

	// Listing.
	{command: "MSET k:1 1 k:2 2 other 3"}, {command: "KEYS *", sorted: 1}, {command: "KEYS k:*", sorted: 1}, {command: "KEYS k:[13]"}, {command: "KEYS nothing*"}, {command: "KEYS k:?", sorted: 1}, {command: "KEYS"}, {command: "DBSIZE"},
	{command: "SCAN 0 MATCH nothing* COUNT 1000"}, {command: "SCAN 0 MATCH other COUNT 1000"}, {command: "SCAN 0 TYPE hash COUNT 1000"}, {command: "SCAN x"}, {command: "SCAN 0 COUNT 0"}, {command: "SCAN 0 COUNT x"}, {command: "SCAN 0 FOO"}, {command: "SCAN"},
	{command: "FLUSHALL FOO"}, {command: "FLUSHDB SYNC"}, {command: "DBSIZE"}, {command: "SET x 1"}, {command: "FLUSHALL ASYNC"}, {command: "KEYS *"},

	// The connection.
	{command: "PING"}, {command: "PING hello"}, {command: "PING a b"}, {command: "ECHO hi"}, {command: "ECHO"}, {command: "SELECT 0"}, {command: "SELECT x"}, {command: "SELECT 99"},
	{command: "SELECT 1", ours: "-ERR DB index is out of range", why: "there is one database"},
	{command: "CLIENT GETNAME"}, {command: "CLIENT SETNAME me"}, {command: "CLIENT GETNAME"}, {command: "CLIENT NO-EVICT ON"}, {command: "CLIENT KILL ID 999999"}, {command: "CLIENT KILL 1.2.3.4:5"}, {command: "CLIENT KILL ID x"}, {command: "CLIENT REPLY FOO"},
	{command: "AUTH x"}, {command: "AUTH default x"}, {command: "AUTH bob x"}, {command: "HELLO 4"}, {command: "HELLO x"}, {command: "HELLO 3 FOO"},
	{command: "WAIT 0 10"}, {command: "WAIT x 10"}, {command: "WAIT 1 -1"}, {command: "ROLE"}, {command: "CLUSTER INFO"}, {command: "LATENCY LATEST"}, {command: "LATENCY RESET"}, {command: "SLOWLOG RESET"}, {command: "SLOWLOG LEN"},
	{command: "CONFIG GET save"}, {command: "CONFIG GET nothing"}, {command: "CONFIG RESETSTAT"}, {command: "COMMAND GETKEYS GET a"}, {command: "COMMAND GETKEYS MSET a 1 b 2"}, {command: "COMMAND GETKEYS ECHO hi"}, {command: "COMMAND GETKEYS NOPE a"}, {command: "COMMAND GETKEYS GET a b"},
	{command: "COMMAND LIST FILTERBY PATTERN incrb*", sorted: 1}, {command: "COMMAND INFO nope"}, {command: "COMMAND DOCS nope"}, {command: "ACL WHOAMI"}, {command: "MEMORY USAGE none"}, {command: "UNWATCH"}, {command: "RESET"},
	{command: "LPUSH list 1", ours: "-ERR unknown command 'LPUSH': Tally serves counters; it has no lists", why: "not served"},
	{command: "SUBSCRIBE channel", ours: "-ERR unknown command 'SUBSCRIBE': Tally serves counters; it has no channels", why: "not served"},
}

func splitCommand(s string) []string {
	args := strings.Fields(s)
	for i := range args {
		if args[i] == `""` {
			args[i] = ""
		}
	}
	return args
}

func TestAgainstRedis(t *testing.T) {
	addr := startRedis(t)
	for _, protocol := range []string{"2", "3"} {
		transports(t, "RESP"+protocol, func(t *testing.T, o Options) {
			redis, tally := dial(t, addr), dial(t, start(t, newServer(t, o)))
			redis.do("FLUSHALL")
			for _, p := range []*peer{redis, tally} {
				if v := p.do("HELLO", protocol); v.kind == '-' {
					t.Fatal(v)
				}
			}
			for _, c := range comparisons {
				args := splitCommand(c.command)
				theirs := redis.do(args...)
				if c.command == "SUBSCRIBE channel" && protocol == "2" {
					redis.do("UNSUBSCRIBE")
				}
				ours := tally.do(args...)
				if c.sorted > 0 {
					theirs, ours = theirs.sorted(c.sorted), ours.sorted(c.sorted)
				}
				want := theirs.String()
				if c.ours != "" {
					if want == c.ours {
						t.Errorf("%s: the difference (%s) is gone: both answer %s", c.command, c.why, want)
					}
					want = c.ours
				}
				if ours.String() != want {
					t.Errorf("%s: Tally answers %s, want %s", c.command, ours, want)
				}
				if c.command == "RESET" {
					redis.do("HELLO", protocol)
					tally.do("HELLO", protocol)
				}
			}
		})
	}
}
