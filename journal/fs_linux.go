package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Sync is fdatasync: in a preallocated file it need not write the inode.
func (f osFile) Sync() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		if err != unix.EINTR {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
	}
}

func (f osFile) Preallocate(size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case err == nil, errors.Is(err, unix.EOPNOTSUPP): // without it the file grows as it is written
			return nil
		case err != unix.EINTR:
			return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
		}
	}
}
