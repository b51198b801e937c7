// Command goredis runs a script of commands through go-redis and prints each
// reply's leaves on a line. See test/clients.
//
// usage: goredis ADDR one|pipeline <commands
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: os.Args[1], MaxRetries: -1})
	defer client.Close()
	conn := client.Conn() // one connection, as MULTI needs
	defer conn.Close()

	var replies []*redis.Cmd
	pipeline := conn.Pipeline()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		args := words(lines.Text())
		if os.Args[2] == "pipeline" {
			replies = append(replies, pipeline.Do(ctx, args...))
		} else {
			replies = append(replies, conn.Do(ctx, args...))
		}
	}
	// Exec returns the first error reply; each is looked at below.
	if _, err := pipeline.Exec(ctx); err != nil && !isReply(err) {
		log.Fatal(err)
	}
	for _, r := range replies {
		v, err := r.Result()
		switch {
		case errors.Is(err, redis.Nil):
			fmt.Println("nil")
		case isReply(err):
			fmt.Println("!")
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(strings.Join(leaves(nil, v), " "))
		}
	}
}

func words(line string) (args []any) {
	for word := range strings.SplitSeq(line, " ") {
		args = append(args, word)
	}
	return args
}

// isReply tells whether err is what the server answered, not a failure to ask.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

func leaves(out []string, v any) []string {
	switch v := v.(type) {
	case nil:
		return append(out, "nil")
	case error:
		return append(out, "!")
	case []any:
		if len(v) == 0 && out == nil {
			return []string{"empty"}
		}
		for _, item := range v {
			out = leaves(out, item)
		}
		return out
	case map[any]any:
		if len(v) == 0 && out == nil {
			return []string{"empty"}
		}
		for name, value := range v {
			out = leaves(leaves(out, name), value)
		}
		return out
	}
	return append(out, fmt.Sprint(v))
}
