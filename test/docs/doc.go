// Package docs keeps the documentation true: it runs the examples against a real
// server, and writes the reference of commands from the server's own table.
//
// A fenced block marked sh is an example: a line that begins with "$ " is a
// command, the lines up to the next one are what it prints. A line "…" stands for
// any lines. Blocks of one file run in order, in one folder, against one server
// that the file has for itself; a block with another mark does not run.
package docs
