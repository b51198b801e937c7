//go:build !linux

package table

// On other systems slot memory is ordinary Go memory without pointers.

func mapMemory(n int) ([]byte, error) { return make([]byte, n), nil }

func growMemory(b []byte, n int) ([]byte, error) {
	grown := make([]byte, n)
	copy(grown, b)
	return grown, nil
}

func returnMemory([]byte) error { return nil }

func hugeMemory([]byte) {}

func unmapMemory([]byte) error { return nil }
