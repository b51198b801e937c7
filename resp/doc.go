// Package resp serves an engine over the Redis protocol, RESP2 and RESP3, so
// that any Redis client can count with Tally.
//
// It is not a Redis: it serves counters, and names every command it does not
// serve. Commands without a counter's name (INCR, GET, SET …) mean counter
// "value" of an object; hash commands (HINCRBY, HGET …) name the counter. Both
// may be used on one object. TALLY.* commands say what Redis cannot.
//
// Life of a request: a transport reads bytes into a buffer; conn.process takes
// every complete request from it (reader.go), looks the command up in the one
// table (commands.go), runs it and appends the reply to the connection's output
// (writer.go) together with the journal position the reply depends on. The
// transport holds the output until the journal is durable up to there (outbox.go)
// and then writes it once, so a pipeline pays for one commit and one write.
//
// Where a reply differs from Redis' on purpose (redis_test.go lists each case):
// values are whole numbers; SET, GETDEL and their like touch counter "value" only
// and leave the object's other counters; TYPE follows from the counters there
// are; WATCH compares what the object is with what it was, so a change that was
// taken back does not stop EXEC; SCAN, KEYS, DBSIZE, INFO and TALLY commands are
// refused inside MULTI; there is one database and one user.
//
// When the disk fails, replies that wait for it become UNKNOWN errors, one each;
// a connection whose own state such a reply was about (MULTI, HELLO, …) ends.
//
// A conn belongs to one goroutine at a time: its event loop, or, while it runs a
// slow command, the goroutine that runs it. Server may be used by any goroutine.
package resp
