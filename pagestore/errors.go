package pagestore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tally-counter/tally/counter"
)

// fail gives an error of Pebble or of the file system its kind, place and advice.
func (s *Store) fail(what string, err error) error {
	var kind error
	var advice string
	switch {
	case counter.KindOf(err) != nil:
		return fmt.Errorf("pagestore: %s: %w", what, err)
	case errors.Is(err, pebble.ErrReadOnly):
		kind, advice = counter.ErrInvalid, "the store was opened to be read only"
	case pebble.IsCorruptionError(err):
		kind, advice = counter.ErrCorrupt, "restore "+s.dir+" from a backup; `tally verify` lists all damage"
	case diskFull(err):
		kind, advice = counter.ErrUnavailable, "the disk is full: free space on the disk of "+s.dir+"; nothing was changed and it is tried again"
	default:
		kind, advice = counter.ErrUnavailable, "check the disk of "+s.dir
	}
	return fmt.Errorf("pagestore: %s: %w (%v); %s", what, kind, err, advice)
}

func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func (s *Store) getError(key []byte, err error) error {
	if errors.Is(err, pebble.ErrNotFound) {
		return errNotFound
	}
	return s.fail(fmt.Sprintf("reading key %x failed", key), err)
}

// errNotFound is made once: asking for what is not there is no failure.
var errNotFound = fmt.Errorf("pagestore: no such key: %w", counter.ErrNotFound)

func (s *Store) openError(err error) error {
	switch {
	case errors.Is(err, pebble.ErrDBDoesNotExist), s.o.ReadOnly && errors.Is(err, errNoFolder):
		return fmt.Errorf("pagestore: there is no store in %s: %w", s.dir, counter.ErrNotFound)
	case errors.Is(err, os.ErrNotExist), strings.Contains(err.Error(), "object size mismatch"):
		return fmt.Errorf("pagestore: opening %s failed, a file is missing or cut short: %w (%v); restore the folder from a backup", s.dir, counter.ErrCorrupt, err)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		return fmt.Errorf("pagestore: %s cannot be locked: %w (%v)", s.dir, counter.ErrLocked, err)
	}
	return s.fail("opening "+s.dir+" failed", err)
}

// errNoFolder is a store to be read whose folder is not there.
var errNoFolder = errors.New("no such folder")

// checkMarker refuses a store whose tables are there and the marker of their
// list is not: Pebble would take it for new, and remove the tables.
func (s *Store) checkMarker() error {
	names, err := s.o.FS.List(s.dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if s.o.ReadOnly {
			return errNoFolder
		}
		return nil // a new store
	case err != nil:
		return err
	}
	tables, marker := "", false
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			tables = name
		}
		marker = marker || strings.HasPrefix(name, "marker.manifest.")
	}
	if tables != "" && !marker {
		return fmt.Errorf("table %s is there, the file marker.manifest.* is not; restore the folder from a backup: %w", tables, counter.ErrCorrupt)
	}
	return nil
}

func joinClose(err error, c io.Closer) error { return errors.Join(err, c.Close()) }
