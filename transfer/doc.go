// Package transfer carries counts between files and a counter service: rows of
// TSV, CSV or JSON lines become adds or values (Import), and objects become rows
// (Export).
//
// It knows formats, mappings and how to be exact in spite of crashes; it does not
// know whether a server or a data directory is on the other side (Target, Source).
//
// Reading order: mapping.go (which column means what), format.go and the readers
// tsv.go, csv.go, jsonl.go, then batch.go, import.go and export.go.
//
// Readers and writers belong to one goroutine. Import and Export start one
// goroutine at most and wait for it before they return.
package transfer
