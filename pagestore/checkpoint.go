package pagestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tally-counter/tally/counter"
)

// tableBytesMax is where a table of a checkpoint ends and the next begins.
const tableBytesMax = 64 << 20

// Checkpoint builds one atomic change of the store. One goroutine uses it, and
// a store has one at a time. Memory: the index of one table, tens of bytes for
// each 4 KiB written.
//
// Keys are strictly ascending inside a section; a section may begin anywhere,
// but sections must not overlap. Each is a table, or more: what can be written
// in order belongs in one section. After an error only Abort is of use.
type Checkpoint struct {
	s     *Store
	w     *sstable.Writer // the table being written; nil: none
	paths []string        // all tables
	low   []byte          // the next key of the section must not be below
	del   span            // range to delete that is not in a table yet
	err   error           // the first error; it stays
	done  bool            // committed or aborted
}

// span is the keys from start to before end; nil end: no span.
type span struct{ start, end []byte }

// Begin starts a checkpoint. Errors: counter.ErrBusy while another is open,
// counter.ErrUnavailable when the disk is full or the store stopped writing,
// counter.ErrInvalid when it is read only.
func (s *Store) Begin() (*Checkpoint, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	if !s.open.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("pagestore: another checkpoint is being built: %w", counter.ErrBusy)
	}
	return &Checkpoint{s: s}, nil
}

// Set stores val under key, at least one byte. It copies both.
func (c *Checkpoint) Set(key, val []byte) error {
	if c.reach(key) {
		c.low = append(append(c.low[:0], key...), 0)
		c.check("writing a table failed", c.w.Set(key, val))
	}
	return c.err
}

// Delete removes key; it need not be there.
func (c *Checkpoint) Delete(key []byte) error {
	if c.reach(key) {
		c.low = append(append(c.low[:0], key...), 0)
		c.check("writing a table failed", c.w.Delete(key))
	}
	return c.err
}

// DeletePrefix removes every key that begins with prefix, at least one byte and
// not all 0xff, except what this checkpoint sets. It takes its place in the
// order of keys: what is set under prefix follows it.
func (c *Checkpoint) DeletePrefix(prefix []byte) error {
	end := after(prefix)
	if c.err == nil && end == nil {
		c.refuse("prefix %x has no key behind it and cannot be deleted as one", prefix)
	}
	if c.reach(prefix) && c.del.end == nil { // else a range that holds prefix is being deleted
		c.del = span{bytes.Clone(prefix), end}
		c.low = append(c.low[:0], prefix...)
	}
	return c.err
}

// Section ends a section: the next key may be lower than those before.
func (c *Checkpoint) Section() {
	c.finishDelete(c.del.end)
	c.finishTable()
	c.low = c.low[:0]
}

// reach makes c ready to write key: the order is checked, ranges and tables
// that end before key are finished, and a table is open. False: see c.err.
func (c *Checkpoint) reach(key []byte) bool {
	if c.err == nil && c.done {
		c.refuse("the checkpoint is committed or aborted already")
	}
	if c.err == nil && len(key) == 0 {
		c.refuse("a key is empty")
	}
	if c.del.end != nil && bytes.Compare(key, c.del.end) >= 0 {
		c.finishDelete(c.del.end)
	}
	if c.err != nil {
		return false
	}
	if bytes.Compare(key, c.low) < 0 {
		c.refuse("key %x comes after a key that is not below it", key)
		return false
	}
	if c.w != nil && c.w.Raw().EstimatedSize() >= tableBytesMax {
		rest := span{bytes.Clone(key), c.del.end}
		c.finishDelete(key)
		c.finishTable()
		if rest.end != nil {
			c.del = rest
		}
	}
	if c.err == nil && c.w == nil {
		c.startTable()
	}
	return c.err == nil
}

// finishDelete writes the range being deleted, as far as end, to the table.
func (c *Checkpoint) finishDelete(end []byte) {
	if c.del.end != nil && c.err == nil && bytes.Compare(c.del.start, end) < 0 {
		c.check("writing a table failed", c.w.DeleteRange(c.del.start, end))
		if bytes.Compare(c.low, end) < 0 {
			c.low = append(c.low[:0], end...)
		}
	}
	c.del = span{}
}

func (c *Checkpoint) startTable() {
	fs := c.s.guard
	path := fs.PathJoin(c.s.dir, stagingName, fmt.Sprintf("%06d.sst", len(c.paths)))
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		c.check("a table cannot be created", err)
		return
	}
	c.paths = append(c.paths, path)
	c.w = sstable.NewWriter(objstorageprovider.NewFileWritable(f), c.s.opts.MakeWriterOptions(0, c.s.db.TableFormat()))
}

// finishTable completes and syncs the table being written.
func (c *Checkpoint) finishTable() {
	if c.w != nil {
		c.check("a table cannot be finished", c.w.Close())
	}
	c.w = nil
}

// Commit makes the whole change durable and visible, or nothing of it.
//
// Errors: as Begin; counter.ErrInvalid when sections overlap; and
// counter.ErrUnknown when the disk failed so that only the next start can tell
// whether the change is there, whole; until then readers see it whole or not.
func (c *Checkpoint) Commit() error {
	if c.err == nil && c.done {
		c.refuse("the checkpoint is committed or aborted already")
	}
	c.finishDelete(c.del.end)
	if c.err == nil {
		c.finishTable()
	}
	if c.err == nil {
		c.check("", c.s.writable())
	}
	if c.err == nil && len(c.paths) > 0 {
		err := c.s.db.Ingest(context.Background(), c.paths)
		if frozen := c.s.guard.err(); frozen != nil {
			err = fmt.Errorf("%w (%v)", counter.ErrUnknown, frozen)
		}
		if err != nil {
			if strings.Contains(err.Error(), "overlapping ranges") {
				err = fmt.Errorf("sections overlap: %w", counter.ErrInvalid)
			}
			c.check("the checkpoint was not committed", err)
		} else {
			c.paths = nil
		}
	}
	err := c.err
	c.Abort()
	return err
}

// Abort drops the checkpoint and its files; after Commit it does nothing.
func (c *Checkpoint) Abort() {
	if c.done {
		return
	}
	c.done, c.del = true, span{}
	if c.w != nil {
		_ = c.w.Close() // the file goes now, whatever is in it
	}
	for _, path := range c.paths {
		if err := c.s.guard.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			c.s.o.Logger.Warn("pagestore: a file of a dropped checkpoint stays until the next start", "file", path, "err", err)
		}
	}
	c.s.open.Store(false)
}

// check keeps the first error.
func (c *Checkpoint) check(what string, err error) {
	if err != nil && c.err == nil {
		c.err = err
		if what != "" {
			c.err = c.s.fail(what, err)
		}
	}
}

func (c *Checkpoint) refuse(format string, args ...any) {
	c.err = fmt.Errorf("pagestore: "+format+": %w", append(args, counter.ErrInvalid)...)
}

// clearStaging drops what checkpoints before a crash left.
func (s *Store) clearStaging() error {
	dir := s.guard.PathJoin(s.dir, stagingName)
	if err := s.guard.RemoveAll(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return s.guard.MkdirAll(dir, 0o755)
}
