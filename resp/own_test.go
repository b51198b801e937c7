package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tally-counter/tally/engine"
)

// A step is a command and its reply, where no Redis 7.0 could be asked.
type step struct{ command, want string }

func run(t *testing.T, b *bench, steps []step) {
	t.Helper()
	for _, s := range steps {
		if got := b.do(splitCommand(s.command)...); got != s.want && !(strings.HasSuffix(s.want, "…") && strings.HasPrefix(got, strings.TrimSuffix(s.want, "…"))) {
			t.Errorf("%s\n answers %s\n    want %s", s.command, got, s.want)
		}
	}
}

func TestIncrEx(t *testing.T) {
	b := newBench(t, newServer(t, Options{}))
	run(t, b, []step{
		{"INCREX a", "[1 1]"}, {"INCREX a BYINT 5", "[6 5]"}, {"INCREX a BYINT -10", "[-4 -10]"}, {"INCREX a UBOUND 10 BYINT 20", "[-4 0]"},
		{"INCREX a UBOUND 10 BYINT 20 SATURATE", "[10 14]"}, {"INCREX a UBOUND 10 SATURATE", "[10 0]"}, {"INCREX a LBOUND 0 BYINT -11", "[10 0]"}, {"INCREX a LBOUND 0 BYINT -11 SATURATE", "[0 -10]"},
		{"INCREX a BYINT 20", "[20 20]"}, {"INCREX a BYINT -1 UBOUND 5", "[20 0]"}, {"INCREX a BYINT -1 UBOUND 5 SATURATE", "[5 -15]"},
		{"INCREX none UBOUND 0", "[0 0]"}, {"EXISTS none", "0"}, {"INCREX none UBOUND 0 SATURATE", "[0 0]"}, {"EXISTS none", "1"},
		{"INCREX e EX 100", "[1 1]"}, {"TTL e", "100"}, {"INCREX e", "[2 1]"}, {"TTL e", "100"}, {"INCREX e EX 200 ENX", "[3 1]"}, {"TTL e", "100"}, {"INCREX e EX 200", "[4 1]"}, {"TTL e", "200"},
		{"INCREX e UBOUND 4 EX 300", "[4 0]"}, {"TTL e", "200"}, {"INCREX e PERSIST", "[5 1]"}, {"TTL e", "-1"}, {"INCREX e PX 100000 ENX", "[6 1]"}, {"TTL e", "100"}, {"INCREX e EXAT 33333333333", "[7 1]"}, {"EXPIRETIME e", "33333333333"},
		{"INCREX e PXAT 1", "[8 1]"}, {"EXISTS e", "0"},
		{"INCREX a ENX", "-ERR ENX needs…"}, {"INCREX a PERSIST ENX", "-ERR ENX needs…"}, {"INCREX a EX 1 PERSIST", "-ERR syntax error"}, {"INCREX a EX 0", "-ERR invalid expire time in 'increx' command"},
		{"INCREX a BYFLOAT 1.5", "-ERR Tally counts whole numbers…"}, {"INCREX a BYINT", "-ERR syntax error"}, {"INCREX a BYINT x", "-ERR value is not an integer or out of range"}, {"INCREX a BYINT 1 BYINT 2", "-ERR syntax error"}, {"INCREX a FOO", "-ERR syntax error"}, {"INCREX a LBOUND 2 UBOUND 1", "-ERR LBOUND is above UBOUND"}, {"INCREX", "-ERR wrong number…"},
		{"SET m 9223372036854775807", `"OK"`}, {"INCREX m", "[9223372036854775807 0]"}, {"INCREX m SATURATE", "[9223372036854775807 0]"},
		{"SET m -9223372036854775808", `"OK"`}, {"INCREX m LBOUND 5 SATURATE", "[-9223372036854775808 0]"}, {"GET m", `"-9223372036854775808"`},
	})
}

func TestCounterExpiry(t *testing.T) {
	b := newBench(t, newServer(t, Options{}))
	run(t, b, []step{
		{"HSET h a 1 b 2 c 3", "3"}, {"HTTL h FIELDS 2 a none", "[-1 -2]"}, {"HTTL none FIELDS 1 a", "[-2]"}, {"HEXPIRE h 100 FIELDS 2 a none", "[1 -2]"}, {"HTTL h FIELDS 1 a", "[100]"},
		{"HEXPIRE h 200 NX FIELDS 2 a b", "[0 1]"}, {"HEXPIRE h 50 GT FIELDS 1 a", "[0]"}, {"HEXPIRE h 50 LT FIELDS 1 a", "[1]"}, {"HEXPIRE h 60 XX FIELDS 2 a c", "[1 0]"}, {"HTTL h FIELDS 3 a b c", "[60 200 -1]"},
		{"HPERSIST h FIELDS 3 a c none", "[1 -1 -2]"}, {"HTTL h FIELDS 1 a", "[-1]"}, {"HPEXPIRE h 100000 FIELDS 1 a", "[1]"}, {"HTTL h FIELDS 1 a", "[100]"}, {"HEXPIREAT h 33333333333 FIELDS 1 a", "[1]"}, {"HEXPIRETIME h FIELDS 1 a", "[33333333333]"},
		{"HPEXPIREAT h 33333333333001 FIELDS 1 a", "[1]"}, {"HPEXPIRETIME h FIELDS 1 a", "[33333333333001]"}, {"HINCRBY h a 1", "2"}, {"HPEXPIRETIME h FIELDS 1 a", "[33333333333001]"}, {"HSET h a 5", "0"}, {"HTTL h FIELDS 1 a", "[-1]"},
		{"HEXPIRE h 0 FIELDS 1 a", "[2]"}, {"HEXISTS h a", "0"}, {"HPEXPIREAT h 1 FIELDS 1 b", "[2]"}, {"HLEN h", "1"},
		{"HEXPIRE h -1 FIELDS 1 c", "-ERR invalid expire time, must be >= 0"}, {"HEXPIRE h x FIELDS 1 c", "-ERR value is not an integer or out of range"}, {"HEXPIRE h 9223372036854775807 FIELDS 1 c", "-ERR invalid expire time in 'hexpire' command"},
		{"HEXPIRE h 1 FOO BAR 1 c", "-ERR Mandatory argument FIELDS…"}, {"HEXPIRE h 1 FIELDS 2 c", "-ERR The `numfields` parameter must match…"}, {"HEXPIRE h 1 FIELDS 0 c", "-ERR Number of fields must be a positive integer"}, {"HEXPIRE h 1 NX XX FIELDS 1 c", "-ERR NX and XX…"}, {"HEXPIRE h 1 NX NX NX NX", "-ERR Mandatory…"},
		{"HSETEX h EX 100 FIELDS 2 d 4 e 5", "1"}, {"HTTL h FIELDS 3 c d e", "[-1 100 100]"}, {"HSETEX h FNX FIELDS 2 e 6 f 6", "0"}, {"HSETEX h FXX KEEPTTL FIELDS 1 d 7", "1"}, {"HTTL h FIELDS 1 d", "[100]"}, {"HSETEX h FIELDS 1 d 8", "1"}, {"HTTL h FIELDS 1 d", "[-1]"}, {"HSETEX h FIELDS 2 d 8", "-ERR wrong number…"}, {"HSETEX h FNX FXX FIELDS 1 d 8", "-ERR Only one…"}, {"HSETEX h FIELDS 1 d x", "-ERR value is not…"}, {"HSETEX h EX 1 FIELDS 1", "-ERR wrong number…"},
		{"HGETEX h EX 50 FIELDS 2 d none", `["8" nil]`}, {"HTTL h FIELDS 1 d", "[50]"}, {"HGETEX h PERSIST FIELDS 1 d", `["8"]`}, {"HTTL h FIELDS 1 d", "[-1]"}, {"HGETEX h FIELDS 1 d", `["8"]`},
		{"HGETDEL h FIELDS 2 d none", `["8" nil]`}, {"HEXISTS h d", "0"}, {"HGETDEL h FIELDS 1 d", "[nil]"}, {"HGETDEL h FIELDS x d", "-ERR Number of fields…"},
		{"RENAME h h2", `"OK"`}, {"HTTL h2 FIELDS 2 c e", "[-1 100]"}, {"COPY h2 x:3", "1"}, {"HTTL x:3 FIELDS 2 c e", "[-1 100]"},
	})
}

// Commands with and without a counter's name share an object.
func TestMixedCommands(t *testing.T) {
	b := newBench(t, newServer(t, Options{}))
	run(t, b, []step{
		{"HINCRBY p like 3", "3"}, {"GET p", "nil"}, {"INCR p", "1"}, {"HGET p value", `"1"`}, {"TYPE p", `"hash"`}, {"HGETALL p", `["like" "3" "value" "1"]`}, {"SET p 9", `"OK"`}, {"HLEN p", "2"}, {"SETNX p 4", "0"}, {"GETDEL p", `"9"`}, {"HGETALL p", `["like" "3"]`},
		{"SET q 1", `"OK"`}, {"TYPE q", `"string"`}, {"HLEN q", "1"}, {"HINCRBY q x 1", "1"}, {"TYPE q", `"hash"`}, {"HDEL q value x", "2"}, {"TYPE q", `"none"`},
	})
}

func TestSchemaAndBounds(t *testing.T) {
	b := newBench(t, newServer(t, Options{}))
	run(t, b, []step{
		{"TALLY.SCHEMA SET item stock MIN 0 MAX 10", `"OK"`}, {"TALLY.SCHEMA SET item seats MIN 0 MAX 5 POLICY clamp", `"OK"`}, {"TALLY.SCHEMA SET item free", `"OK"`},
		{"HINCRBY item:1 stock 8", "8"}, {"HINCRBY item:1 stock 5", "-ERR bounds: …"}, {"HINCRBY item:1 stock -9", "-ERR bounds: …"}, {"HGET item:1 stock", `"8"`}, {"HINCRBY item:1 seats 9", "5"},
		{"HSET item:1 stock 11", "-ERR bounds: …"}, {"HSET item:1 free 1 stock 11", "-ERR bounds: …"}, {"HEXISTS item:1 free", "0"}, {"HSET item:1 free 1 stock 2", "1"},
		{"TALLY.ADD item:1 free 1 stock 100", `["rejected" 1 2]`}, {"TALLY.ADD item:1 free 1 stock 1", `["applied" 2 3]`}, {"MSET x 1", `"OK"`},
		{"TALLY.SCHEMA SET default value MAX 100", `"OK"`}, {"MSET y 1 x 101", "-ERR bounds: …"}, {"MGET x y", `["1" nil]`}, {"MSETNX z 1 w 101", "-ERR bounds: …"}, {"EXISTS z", "0"}, {"SET x 101", "-ERR bounds: …"},
		{"TALLY.SCHEMA SET copy stock MAX 1", `"OK"`}, {"HSET copy:1 a 1", "1"}, {"RENAME item:1 copy:1", "-ERR bounds: …"}, {"HGETALL copy:1", `["a" "1"]`}, {"HGET item:1 stock", `"3"`},
		{"TALLY.SCHEMA GET item", `[["counter" "stock" "kind" "total" "min" 0 "max" 10 "policy" "reject"] ["counter" "seats" "kind" "total" "min" 0 "max" 5 "policy" "clamp"] ["counter" "free" "kind" "total" "min" nil "max" nil "policy" "reject"]]`},
		{"TALLY.SCHEMA GET none", "-NOTFOUND there is no namespace 'none'…"}, {"TALLY.SCHEMA NAMESPACE fresh", `"OK"`}, {"TALLY.SCHEMA GET fresh", "[]"}, {"TALLY.SCHEMA DROP fresh", `"OK"`}, {"TALLY.SCHEMA DROP fresh", "-NOTFOUND …"},
		{"TALLY.SCHEMA SET item stock MIN 5 MAX 1", "-ERR counter \"stock\": min 5 is above max 1…"}, {"TALLY.SCHEMA SET item stock MIN x", "-ERR value is not…"}, {"TALLY.SCHEMA SET item stock MIN", "-ERR syntax error"}, {"TALLY.SCHEMA SET item stock POLICY wrap", "-ERR syntax error"}, {"TALLY.SCHEMA FOO", "-ERR unknown subcommand…"},
	})
}

func TestTallyAdd(t *testing.T) {
	b := newBench(t, newServer(t, Options{}))
	run(t, b, []step{
		{"TALLY.ADD post:1 like 1", `["applied" 1]`}, {"TALLY.ADD post:1 like 1 view -2 TOKEN t1", `["applied" 2 -2]`}, {"TALLY.ADD post:1 like 1 view -2 token t1", `["duplicate" 2 -2]`},
		{"TALLY.ADD post:1 like 2 view -2 TOKEN t1", "-CONFLICT …"}, {"TALLY.ADD post:2 like 2 TOKEN t1", `["applied" 2]`}, {"TALLY.ADD post:1 like", "-ERR wrong number…"}, {"TALLY.ADD post:1 like x", "-ERR delta 'x' is not an integer…"}, {"TALLY.ADD post:1 like 1 view", "-ERR wrong number…"},
		{"TALLY.ADD :x like 1", "-ERR the namespace before the colon is empty…"}, {"TALLY.ADD post:1 like 9223372036854775807", "-ERR increment or decrement would overflow"}, {"TALLY.ADD post:9 token 5", `["applied" 5]`},
	})
}

func TestTallyMAdd(t *testing.T) {
	b := newBench(t, newServer(t, Options{}))
	run(t, b, []step{
		{"TALLY.SCHEMA SET item stock MIN 0", `"OK"`},
		{"TALLY.MADD 2 post:1 like 1 post:2 view 5", `[["applied" 1] ["applied" 5]]`},
		{"TALLY.MADD COUNTER like 2 post:1 1 post:3 7", `[["applied" 2] ["applied" 7]]`},
		{"TALLY.MADD DELTAS 2 post:1 2 like 1 view 1 post:2 1 view 1", `[["applied" 3 1] ["applied" 6]]`},
		{"TALLY.MADD TOKENS 2 post:1 like 1 t1 post:2 like 1", "-ERR 2 items are announced…"},
		{"TALLY.MADD TOKENS 2 post:1 like 1 t1 post:2 like 1 \"\"", `[["applied" 4] ["applied" 1]]`},
		{"TALLY.MADD TOKENS 2 post:1 like 1 t1 post:1 like 2 t1", `[["duplicate" 4] ["failed" "CONFLICT …`},
		{"TALLY.MADD COUNTS 4 post:1 like 1 item:1 stock -1 post:2 like 9223372036854775807 post:2 like 1", `[2 0 1 1 [[1 "rejected" 0] [2 "failed" "ERR increment or decrement would overflow"]]]`},
		{"TALLY.MADD COUNTS TOKENS COUNTER like 2 post:1 1 u1 post:1 1 u1", "[1 1 0 0 []]"},
		{"TALLY.MADD DELTAS TOKENS 1 post:5 2 a 1 b 2 u2", `[["applied" 1 2]]`},
		{"TALLY.MADD 2 post:1 like 1", "-ERR 2 items are announced…"}, {"TALLY.MADD 1 post:1 like 1 post:2", "-ERR 1 items are announced, and 1 arguments follow them"}, {"TALLY.MADD 0 a b c", "-ERR a batch has 1 to 65536 items…"}, {"TALLY.MADD 70000 a b c", "-ERR a batch has…"},
		{"TALLY.MADD FOO a b c", "-ERR 'FOO' is neither…"}, {"TALLY.MADD COUNTS TOKENS DELTAS", "-ERR syntax error"}, {"TALLY.MADD COUNTER x DELTAS 1 a 1 b 2", "-ERR COUNTER and DELTAS…"}, {"TALLY.MADD 2 post:9 like 1 :x like 1", "-ERR the namespace before the colon is empty…"}, {"EXISTS post:9", "0"},
		{"TALLY.MADD DELTAS 1 post:9 0 like 1", "-ERR item 0: '0' is not a number of deltas…"}, {"TALLY.MADD 1 post:9 like x", "-ERR delta 'x'…"},
		{"COMMAND GETKEYS TALLY.MADD COUNTER like 2 a:1 1 b:2 1", `["a:1" "b:2"]`}, {"COMMAND GETKEYS TALLY.MGET 1 like a:1 b:2", `["a:1" "b:2"]`},
	})
}

func TestTallySession(t *testing.T) {
	b := newBench(t, newServer(t, Options{}))
	run(t, b, []step{
		{"TALLY.MADD SESSION p 1 1 1 post:1 like 1", "-NOTFOUND …"}, {"TALLY.SESSION OPEN p", "[1 0]"}, {"TALLY.MADD SESSION p 1 1 2 post:1 like 1 post:2 like 1", `[["applied" 1] ["applied" 1]]`},
		{"TALLY.MADD SESSION p 1 1 2 post:1 like 1 post:2 like 1", `[["duplicate" 1] ["duplicate" 1]]`}, {"TALLY.MADD COUNTS SESSION p 1 2 1 post:1 like 1", "[1 0 0 0 []]"}, {"TALLY.MADD SESSION p 1 4 1 post:1 like 1", "-GAP …"},
		{"TALLY.SESSION OPEN p", "[2 2]"}, {"TALLY.MADD SESSION p 1 3 1 post:1 like 1", "-FENCED …"}, {"TALLY.MADD SESSION p 2 3 1 post:1 like 1", `[["applied" 3]]`}, {"TALLY.MADD SESSION p 2 x 1 post:1 like 1", "-ERR SESSION needs…"}, {"TALLY.MADD SESSION p 2 4 TOKENS 1 post:1 like 1 t", "-ERR SESSION and TOKENS…"},
		{"TALLY.SESSION CLOSE p", `"OK"`}, {"TALLY.SESSION CLOSE p", "-NOTFOUND …"}, {"TALLY.SESSION FOO p", "-ERR syntax error"},
	})
}

func TestTallyReads(t *testing.T) {
	b := newBench(t, newServer(t, Options{}))
	run(t, b, []step{
		{"HSET post:1 like 1 view 10", "2"}, {"HSET post:2 like 2", "1"}, {"HSET post:a like 3", "1"}, {"HSET post:{a:b} like 4", "1"},
		{"TALLY.MGET 2 like view post:1 post:2 post:9", "[1 10 2 nil nil nil]"}, {"TALLY.MGET 1 none post:1", "[nil]"}, {"TALLY.MGET 3 like view post:1", "-ERR 3 counters are announced…"}, {"TALLY.MGET x like post:1", "-ERR 'x' is not a number of counters…"},
		{"TALLY.SCAN post COUNT 2", `["a" [["1" ["like" 1 "view" 10]] ["2" ["like" 2]]]]`}, {"TALLY.SCAN post FROM a COUNT 1", `["a:b" [["a" ["like" 3]]]]`}, {"TALLY.SCAN post FROM a:b", `[nil [["a:b" ["like" 4]]]]`}, {"TALLY.SCAN none", "[nil []]"}, {"TALLY.SCAN post COUNT 0", "-ERR COUNT is…"}, {"TALLY.SCAN post FOO 1", "-ERR syntax error"},
		{"TALLY.SCHEMA LIST", `[["namespace" "post" "objects" 4 "counters" 2]]`}, {"TALLY.CHECKPOINT", `"OK"`}, {"SAVE", `"OK"`},
	})
	if got := b.do("TALLY.STATS"); !strings.Contains(got, `"objects" 4`) {
		t.Errorf("TALLY.STATS answers %s", got)
	}
	for _, sub := range []string{"TALLY.HELP", "COMMAND", "COMMAND DOCS", "INFO", "MEMORY STATS", "MEMORY DOCTOR", "CLIENT LIST", "CLIENT INFO", "CLIENT HELP", "CONFIG GET *", "COMMAND HELP", "LATENCY DOCTOR", "TIME", "LASTSAVE", "WAITAOF 1 0 100"} {
		if got := b.do(splitCommand(sub)...); got[0] == '-' || len(got) < 3 {
			t.Errorf("%s answers %s", sub, got)
		}
	}
}

// SCAN sees every object once, whatever its namespace and id, also across pages.
func TestScan(t *testing.T) {
	b := newBench(t, newServer(t, Options{}))
	want := map[string]bool{}
	for i := range 200 {
		for _, key := range []string{fmt.Sprint(i), fmt.Sprintf("post:%d", i*7919), fmt.Sprintf("post:text%d", i), fmt.Sprintf("a:b:{x:%d}", i)} {
			b.do("HINCRBY", key, "like", "1")
			want[key] = true
		}
	}
	for _, match := range []string{"*", "post:*", "a:b:*", "post:t*", "[p]ost:*", "{*", "1*", "po*"} {
		got := map[string]int{}
		for cursor := "0"; ; {
			out, _ := b.feed(encode("SCAN", cursor, "COUNT", "7", "MATCH", match))
			v := parse(t, out)
			for _, k := range v.list[1].list {
				got[k.text]++
			}
			if cursor = v.list[0].text; cursor == "0" {
				break
			}
		}
		for k := range want {
			if n := got[k]; (n == 1) != glob(match, k) || n > 1 {
				t.Fatalf("MATCH %s: %s is seen %d times", match, k, n)
			}
		}
		if all := parse(t, first(b.feed(encode("KEYS", match)))); len(all.list) != len(got) {
			t.Fatalf("KEYS %s: %d keys, SCAN finds %d", match, len(all.list), len(got))
		}
	}
	run(t, b, []step{{"SCAN 12345", "-ERR cursor 12345 is not known (any more); start again with SCAN 0"}, {"MULTI", `"OK"`}, {"SCAN 0", "-ERR Command not allowed inside a transaction"}, {"EXEC", "-EXECABORT …"}})
}

func TestCursorsAreBounded(t *testing.T) {
	c := newCursors()
	old := c.put(place{namespace: "first"})
	for range cursorsMax - 1 {
		c.put(place{namespace: "x"})
	}
	if p, ok := c.get(old); !ok || p.namespace != "first" {
		t.Fatal("the oldest place within the limit is lost")
	}
	newest := c.put(place{namespace: "last"})
	if _, ok := c.get(old); ok {
		t.Fatal("a place beyond the limit is kept")
	}
	if p, ok := c.get(newest); !ok || p.namespace != "last" {
		t.Fatal("the newest place is lost")
	}
	if _, ok := c.get(newest + 1); ok || len(c.places) != cursorsMax {
		t.Fatal("an unknown cursor is taken, or too many are kept")
	}
}

func first(out, _ []byte) []byte { return out }

// A closed schema refuses what is not declared.
func TestClosedSchema(t *testing.T) {
	e := openEngine(t, engine.Options{ClosedSchema: true})
	s, err := New(e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	run(t, newBench(t, s), []step{{"INCR a", "-READONLY …"}, {"TALLY.SCHEMA SET default value", `"OK"`}, {"INCR a", "1"}, {"HINCRBY a x 1", "-READONLY …"}})
}
