//go:build assert

package table

const assertions = true
