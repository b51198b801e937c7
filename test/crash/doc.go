// Package crash kills a real `tally serve` with SIGKILL under load, again and
// again on one data directory, and checks after each restart what Tally promises:
//
//   - every acknowledged add counts, once;
//   - an add with a token, or a batch of a session, that is sent again until it is
//     acknowledged counts exactly once, however often the server died in between;
//   - an add whose reply was lost counts once or not at all;
//   - several deltas of one add count together or not at all;
//   - no value that a client has seen is taken back;
//   - what the clients saw of each object is linearizable.
//
// All deltas are positive, so "not taken back" is "does not fall".
package crash
