package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// reserveSegment creates a file of size bytes whose space is reserved, so that
// a sync need not grow it and a full disk shows before it hurts.
func reserveSegment(fs FS, path string, size int64) (File, error) {
	f, err := fs.Create(path)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Preallocate(size), f.Sync()); err != nil {
		return nil, errors.Join(err, f.Close(), fs.Remove(path)) // the space is needed elsewhere
	}
	return f, nil
}

// nameSegment makes the reserved file f the segment that starts at start. A
// file has a segment's name only when its header is durable.
func nameSegment(fs FS, dir string, f File, id [16]byte, start Pos) error {
	name := segmentName(start)
	if _, err := f.WriteAt(segmentHeader(id, start), 0); err != nil {
		return fmt.Errorf("segment %s: its header cannot be written: %w", name, err)
	}
	if err := f.Sync(); err != nil {
		return syncError{fmt.Errorf("segment %s: sync failed: %w", name, err)}
	}
	if err := fs.Rename(filepath.Join(dir, nextName), filepath.Join(dir, name)); err != nil {
		return fmt.Errorf("segment %s cannot be named: %w", name, err)
	}
	if err := fs.SyncDir(dir); err != nil {
		return syncError{fmt.Errorf("segment %s: the sync of its directory failed: %w", name, err)}
	}
	return nil
}

// createSegment reserves and names a segment in one go.
func createSegment(fs FS, dir string, id [16]byte, start Pos, size int64) (File, error) {
	f, err := reserveSegment(fs, filepath.Join(dir, nextName), size)
	if err != nil {
		return nil, err
	}
	if err := nameSegment(fs, dir, f, id, start); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// reopenSegment opens the last segment for appending after its good blocks:
// what follows them is cut off.
//
// Blocks that no later block proves durable are written again before the sync.
// They were read from the page cache, and after a sync that failed the cache
// may show what the disk never received and a sync would not write.
func reopenSegment(fs FS, dir string, found recovered, size int64, log *slog.Logger) (File, error) {
	seg, s := found.segs[len(found.segs)-1], found.last
	f, err := fs.Open(filepath.Join(dir, seg.name))
	if err != nil {
		return nil, unavailable("segment "+seg.name+" cannot be opened for writing", err)
	}
	if s.junk > 0 {
		log.Warn("journal: a torn tail, never acknowledged, is cut off", "segment", seg.name, "byte", s.off, "bytes", s.junk, "why", s.why)
	}
	err = f.Truncate(s.off)
	if err == nil {
		err = rewrite(f, s.provenOff, s.off)
	}
	if err != nil {
		return nil, errors.Join(unavailable("segment "+seg.name+" cannot be made ready for writing", err), f.Close())
	}
	// On a full disk there is nothing to reserve: reads go on, writes will tell.
	if err := f.Preallocate(size); err != nil {
		log.Warn("journal: no space can be reserved for the current segment", "segment", seg.name, "err", err)
	}
	if err := f.Sync(); err != nil {
		return nil, errors.Join(unavailable("segment "+seg.name+" cannot be synced", err), f.Close())
	}
	return f, nil
}

// rewrite writes the bytes from off to end over themselves.
func rewrite(f File, off, end int64) error {
	buf := make([]byte, min(1<<20, end-off))
	for off < end {
		part := buf[:min(int64(len(buf)), end-off)]
		if _, err := f.ReadAt(part, off); err != nil {
			return err
		}
		if _, err := f.WriteAt(part, off); err != nil {
			return err
		}
		off += int64(len(part))
	}
	return nil
}

func removeIfThere(fs FS, path string) error {
	if err := fs.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
