package journal

import (
	"io"
	"os"
	"path/filepath"
)

// FS is the file system a journal lives in. Paths are whole paths; errors are
// those of package os, so that errors.Is finds syscall.ENOSPC in them.
type FS interface {
	MkdirAll(dir string) error
	List(dir string) (names []string, err error) // base names, in any order
	Create(name string) (File, error)            // for reading and writing; an old file is emptied
	Open(name string) (File, error)              // for reading and writing
	OpenRead(name string) (File, error)          // for reading only
	Rename(old, new string) error                // replaces new
	Remove(name string) error
	SyncDir(dir string) error // makes creations, renames and removals in dir durable
}

// File is an open file. ReadAt and WriteAt are as in package io.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
	Preallocate(size int64) error // reserves blocks up to size and makes the file that long; what is new reads as zero
	Sync() error                  // makes the data, and the length they need, durable
}

// OS is the file system of the operating system.
var OS FS = osFS{}

type osFS struct{}

func (osFS) MkdirAll(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return osFS{}.SyncDir(filepath.Dir(dir))
}

func (osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (osFS) Create(name string) (File, error) {
	return osOpen(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}
func (osFS) Open(name string) (File, error)     { return osOpen(name, os.O_RDWR) }
func (osFS) OpenRead(name string) (File, error) { return osOpen(name, os.O_RDONLY) }
func (osFS) Rename(old, new string) error       { return os.Rename(old, new) }
func (osFS) Remove(name string) error           { return os.Remove(name) }

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

func osOpen(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o644)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
