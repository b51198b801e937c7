//go:build unix

package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tally-counter/tally/counter"
)

// lockDir takes the lock of a data directory for this process: an advisory lock
// that goes with the process however it ends.
func lockDir(dir string) (*os.File, error) {
	name := filepath.Join(dir, "LOCK")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock file %s: %w: %w", name, err, counter.ErrUnavailable)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(name)
		f.Close()
		return nil, fmt.Errorf("data directory %s is in use by process %s; stop it, or use another directory: %w", dir, strings.TrimSpace(string(holder)), counter.ErrLocked)
	}
	if err := f.Truncate(0); err == nil {
		fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return f, nil
}

// lockDirForReading keeps writers out of a data directory and changes nothing in it.
func lockDirForReading(dir string) (*os.File, error) {
	name := filepath.Join(dir, "LOCK")
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s is not a data directory of Tally: %w: %w", dir, err, counter.ErrNotFound)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(name)
		f.Close()
		return nil, fmt.Errorf("data directory %s is in use by process %s; stop it first: %w", dir, strings.TrimSpace(string(holder)), counter.ErrLocked)
	}
	return f, nil
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("directory %s: %w: %w", dir, err, counter.ErrUnavailable)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("directory %s: %w: %w", dir, err, counter.ErrUnavailable)
	}
	return nil
}
