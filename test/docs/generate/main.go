// Command generate writes docs/commands.md from a running server's own table.
//
// usage: generate FILE
package main

import (
	"log"
	"os"

	"github.com/tally-counter/tally/test/docs"
	"github.com/tally-counter/tally/test/proc"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: generate FILE")
	}
	err := generate(os.Args[1])
	proc.Clean()
	if err != nil {
		log.Fatal("generate: ", err)
	}
}

func generate(file string) error {
	data, err := os.MkdirTemp("", "tally-generate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	server, err := proc.Tally(data)
	if err != nil {
		return err
	}
	defer server.Kill()
	text, err := docs.Reference(server.Addr)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o666)
}
