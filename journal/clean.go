package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"

	"github.com/tally-counter/tally/counter"
)

// The clean-shutdown mark is a file of its own beside the segments: it says at
// which position the journal ended, so that a segment that lost its tail
// afterwards is known from one that a crash tore.
//
//	0  8  "tallyend"
//	8 16  database id
//	24 8  position after the last record
//	32 4  CRC-32C of bytes 0 to 31
const (
	cleanMagic = "tallyend"
	cleanBytes = 36
)

// writeClean writes the mark; it appears whole or not at all.
func writeClean(fs FS, dir string, id [16]byte, end Pos) error {
	b := make([]byte, cleanBytes)
	copy(b, cleanMagic)
	copy(b[8:], id[:])
	binary.LittleEndian.PutUint64(b[24:], uint64(end))
	binary.LittleEndian.PutUint32(b[32:], crc32.Checksum(b[:32], castagnoli))
	temp := filepath.Join(dir, nextName)
	f, err := fs.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, fs.Remove(temp))
	}
	if err := fs.Rename(temp, filepath.Join(dir, cleanName)); err != nil {
		return err
	}
	return fs.SyncDir(dir)
}

// readClean reads the mark of a journal that was closed cleanly.
func readClean(fs FS, dir string) (end Pos, id [16]byte, err error) {
	f, err := fs.OpenRead(filepath.Join(dir, cleanName))
	if err != nil {
		return 0, id, unavailable("the clean-shutdown mark cannot be opened", err)
	}
	defer f.Close()
	b := make([]byte, cleanBytes)
	size, err := f.Size()
	if err != nil {
		return 0, id, unavailable("the clean-shutdown mark cannot be read", err)
	}
	if size == cleanBytes {
		if _, err := f.ReadAt(b, 0); err != nil {
			return 0, id, unavailable("the clean-shutdown mark cannot be read", err)
		}
	}
	if string(b[:8]) != cleanMagic || binary.LittleEndian.Uint32(b[32:]) != crc32.Checksum(b[:32], castagnoli) {
		return 0, id, fmt.Errorf("journal: file %s: the clean-shutdown mark is damaged: %w (it holds no records: check the disk, then remove the file)",
			filepath.Join(dir, cleanName), counter.ErrCorrupt)
	}
	copy(id[:], b[8:])
	return Pos(binary.LittleEndian.Uint64(b[24:])), id, nil
}
