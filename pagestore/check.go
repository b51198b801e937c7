package pagestore

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// Check reads the whole store and verifies every checksum and the order of
// keys. It returns all damage found, joined, each with its file; nil when there
// is none. It reads at the speed of the disk and may run beside everything else.
func (s *Store) Check() error {
	// An open iterator keeps the tables that it may need from being removed.
	it, err := s.db.NewIter(nil)
	if err != nil {
		return s.fail("the store cannot be read", err)
	}
	levels, err := s.db.SSTables()
	if err != nil {
		return joinClose(s.fail("the tables cannot be listed", err), it)
	}
	var all []error
	seen := map[string]bool{}
	for _, level := range levels {
		for _, t := range level {
			name := fmt.Sprintf("%s.sst", t.BackingSSTNum)
			if seen[name] {
				continue
			}
			seen[name] = true
			if err := s.checkTable(name); err != nil {
				all = append(all, s.fail("table "+name+" is damaged", err))
			}
		}
	}
	for ok := it.First(); ok; ok = it.Next() {
		if _, err := it.ValueAndErr(); err != nil {
			all = append(all, s.fail("reading in order failed", err))
			break
		}
	}
	if err := it.Close(); err != nil {
		all = append(all, s.fail("reading in order failed", err))
	}
	if err := s.db.CheckLevels(&pebble.CheckLevelsStats{}); err != nil {
		all = append(all, s.fail("the tables contradict each other", err))
	}
	return errors.Join(all...)
}

// checkTable verifies every block of a table, each with its own checksum.
func (s *Store) checkTable(name string) error {
	f, err := s.o.FS.Open(s.o.FS.PathJoin(s.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil // replaced by a compaction since it was listed; a missing table fails the scan in order
	}
	if err != nil {
		return err
	}
	readable, err := objstorageprovider.NewFileReadable(f, s.o.FS, objstorageprovider.NewReadaheadConfig(), s.dir)
	if err != nil {
		return joinClose(err, f)
	}
	r, err := sstable.NewReader(context.Background(), readable, s.opts.MakeReaderOptions())
	if err != nil {
		return joinClose(err, readable)
	}
	return joinClose(r.ValidateBlockChecksums(), r)
}
