//go:build !linux

package journal

// Preallocate does nothing here: the file grows as it is written.
func (f osFile) Preallocate(int64) error { return nil }
