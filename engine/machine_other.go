//go:build !linux

package engine

// machineMemory is what is assumed of machines that are not asked, in bytes.
func machineMemory() int64 { return 8 << 30 }
