// Command rueidis runs a script of commands through rueidis and prints each
// reply's leaves on a line. See test/clients.
//
// usage: rueidis ADDR one|pipeline <commands
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/redis/rueidis"
)

func main() {
	ctx := context.Background()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{os.Args[1]},
		ForceSingleClient: true,
		DisableCache:      true, // server-assisted caching is Redis' own
		DisableRetry:      true,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	conn, cancel := client.Dedicate() // one connection, as MULTI needs
	defer cancel()

	var commands rueidis.Commands
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Split(lines.Text(), " ")
		commands = append(commands, client.B().Arbitrary(words[0]).Args(words[1:]...).Build())
	}
	if os.Args[2] == "pipeline" {
		for _, r := range conn.DoMulti(ctx, commands...) {
			report(r)
		}
		return
	}
	for _, command := range commands {
		report(conn.Do(ctx, command))
	}
}

func report(r rueidis.RedisResult) {
	if err := r.NonRedisError(); err != nil {
		log.Fatal(err)
	}
	v, err := r.ToAny()
	switch {
	case rueidis.IsRedisNil(err):
		fmt.Println("nil")
	case err != nil:
		fmt.Println("!")
	default:
		fmt.Println(strings.Join(leaves(nil, v), " "))
	}
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
	case map[string]any:
		if len(v) == 0 && out == nil {
			return []string{"empty"}
		}
		for name, value := range v {
			out = leaves(append(out, name), value)
		}
		return out
	}
	return append(out, fmt.Sprint(v))
}
