//go:build !assert

package table

// assertions: with the build tag assert every page written is checked as if it
// came from disk.
const assertions = false
