package journal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/tally-counter/tally/counter"
)

// Cut is the way out of damage: it drops every block of the journal in dir that
// ends behind position at, with all that follows, and returns where the journal
// ends then. When no good block holds at, and at is not where one ends, the
// whole journal is dropped and an empty one begins at at: so a journal that
// ends before what the page store knows can be taken up again.
//
// Nothing is deleted: what is dropped stays beside the journal in files named
// *.cut. No process may have the journal open. Records from the returned
// position on are lost, acknowledged or not. Errors: counter.ErrUnavailable;
// after one Cut may be called again.
func Cut(fs FS, dir string, at Pos) (end Pos, err error) {
	if fs == nil {
		fs = OS
	}
	segs, clean, err := listSegments(fs, dir)
	if err != nil {
		return 0, err
	}
	id := anyID(fs, dir, segs)
	keep, s, err := lastKept(fs, dir, segs, at)
	if err != nil {
		return 0, err
	}
	if clean {
		if err := setAside(fs, dir, cleanName); err != nil {
			return 0, err
		}
	}
	// The newest goes first: what a crash leaves is a journal cut less short.
	for i := len(segs) - 1; i > keep; i-- {
		if err := setAside(fs, dir, segs[i].name); err != nil {
			return 0, err
		}
	}
	if keep < 0 {
		f, err := createSegment(fs, dir, id, at, segmentHeaderBytes)
		if err != nil {
			return 0, unavailable("an empty journal cannot be created", err)
		}
		return at, f.Close()
	}
	if s.limited || s.junk > 0 {
		err = dropTail(fs, dir, segs[keep].name, s.off)
	}
	return s.end, err
}

// lastKept returns the segment in which the journal is to end, and what of it
// stays; -1 when nothing stays.
func lastKept(fs FS, dir string, segs []segment, at Pos) (int, scan, error) {
	for i := len(segs) - 1; i >= 0; i-- {
		if segs[i].start > at {
			continue
		}
		s, err := scanSegment(fs, dir, segs[i], at, func(Pos, Pos, []byte) error { return nil })
		switch {
		case errors.Is(err, counter.ErrCorrupt) && s.off > 0:
			s.limited = true // a malformed record: its block goes
			return i, s, nil
		case errors.Is(err, counter.ErrCorrupt):
			at = segs[i].start // no header: the journal ends where this segment would begin
			continue
		case err != nil:
			return -1, scan{}, err
		case s.limited || s.end == at:
			return i, s, nil
		}
		break
	}
	return -1, scan{}, nil
}

// setAside renames a file out of the journal's way.
func setAside(fs FS, dir, name string) error {
	to, err := asideName(fs, dir, name)
	if err == nil {
		err = fs.Rename(filepath.Join(dir, name), filepath.Join(dir, to))
	}
	if err == nil {
		err = fs.SyncDir(dir)
	}
	if err != nil {
		return unavailable("file "+name+" cannot be set aside", err)
	}
	return nil
}

// asideName returns a name that is free.
func asideName(fs FS, dir, name string) (string, error) {
	names, err := fs.List(dir)
	if err != nil {
		return "", err
	}
	taken := map[string]bool{}
	for _, n := range names {
		taken[n] = true
	}
	free := name + ".cut"
	for i := 2; taken[free]; i++ {
		free = fmt.Sprintf("%s.%d.cut", name, i)
	}
	return free, nil
}

// dropTail copies a segment aside and cuts it off at byte off.
func dropTail(fs FS, dir, name string, off int64) error {
	to, err := asideName(fs, dir, name)
	if err == nil {
		err = copyFile(fs, filepath.Join(dir, name), filepath.Join(dir, to))
	}
	if err == nil {
		err = fs.SyncDir(dir)
	}
	if err != nil {
		return unavailable("segment "+name+" cannot be copied aside", err)
	}
	f, err := fs.Open(filepath.Join(dir, name))
	if err == nil {
		err = errors.Join(f.Truncate(off), f.Sync(), f.Close())
	}
	if err != nil {
		return unavailable("segment "+name+" cannot be cut", err)
	}
	return nil
}

func copyFile(fs FS, from, to string) error {
	in, err := fs.OpenRead(from)
	if err != nil {
		return err
	}
	defer in.Close()
	size, err := in.Size()
	if err != nil {
		return err
	}
	out, err := fs.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(out, 0), io.NewSectionReader(in, 0, size))
	return errors.Join(err, out.Sync(), out.Close())
}

// anyID returns the database id of the first segment that has one, or a new one.
func anyID(fs FS, dir string, segs []segment) (id [16]byte) {
	for _, seg := range segs {
		if s, err := scanSegment(fs, dir, seg, 0, func(Pos, Pos, []byte) error { return nil }); err == nil {
			return s.id
		}
	}
	return newID()
}
