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
// A conn belongs to one goroutine at a time: its event loop, or, while it runs a
// slow command, the goroutine that runs it. Server may be used by any goroutine.
package resp
