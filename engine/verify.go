package engine

import (
	"bytes"
	"fmt"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/journal"
	"github.com/tally-counter/tally/pagestore"
	"github.com/tally-counter/tally/table"
)

// problemsMax bounds what a report lists; it counts all.
const problemsMax = 100

// Problem is one thing that verify found wrong.
type Problem struct {
	Place string `json:"place"` // file, key or record
	Error string `json:"error"`
}

// VerifyReport says what was checked and found.
type VerifyReport struct {
	Namespaces   int            `json:"namespaces"`
	Objects      int64          `json:"objects"` // as of the checkpoint; the journal may add more
	Pages        int64          `json:"pages"`
	PageBytes    int64          `json:"page_bytes"`
	Tokens       int64          `json:"tokens"`
	Sessions     int64          `json:"sessions"`
	Effects      int64          `json:"effects"` // in the journal behind the checkpoint
	Checkpoint   Pos            `json:"checkpoint"`
	Journal      journal.Report `json:"journal"`
	ProblemCount int            `json:"problem_count"`
	Problems     []Problem      `json:"problems"` // the first 100
}

func (r *VerifyReport) problem(place string, err error) {
	r.ProblemCount++
	if len(r.Problems) < problemsMax {
		r.Problems = append(r.Problems, Problem{place, err.Error()})
	}
}

// VerifyOptions are the file systems to read from; zero for the operating system's.
type VerifyOptions struct {
	JournalFS journal.FS
	StoreFS   pagestore.FS
}

// Verify checks a data directory that no process holds, without writing to it:
// checksums of every block, every invariant of every page, the order of pages and
// their agreement with the directory, row counts, and the journal's continuity
// from the checkpoint on. The error is set when it could not look at all
// (ErrLocked, ErrNotFound …); what it finds wrong is in the report.
func Verify(dir string, o VerifyOptions) (VerifyReport, error) {
	var r VerifyReport
	lock, err := lockDirForReading(dir) // a writer cannot begin while it is held
	if err != nil {
		return r, err
	}
	defer lock.Close()
	e := &Engine{dir: dir}
	store, err := pagestore.Open(e.pagesDir(), pagestore.Options{FS: o.StoreFS, ReadOnly: true})
	if err != nil {
		r.problem("page store", err)
	} else {
		v := verifier{r: &r, store: store}
		v.run()
		if err := store.Close(); err != nil {
			r.problem("page store", err)
		}
	}
	r.Journal, err = journal.Verify(o.JournalFS, e.journalDir(), r.Checkpoint, func(end Pos, rec []byte) error {
		reader := effectReader{b: rec}
		var f effect
		for reader.next(&f) {
			r.Effects++
		}
		return reader.err
	})
	if err != nil {
		r.problem("journal", err)
	}
	for _, p := range r.Journal.Problems {
		r.problem(fmt.Sprintf("journal/%s, byte %d", p.File, p.Byte), fmt.Errorf("%s (`tally verify --cut-journal %d DIR` drops what follows): %w", p.Text, p.Pos, counter.ErrCorrupt))
	}
	return r, nil
}

type verifier struct {
	r     *VerifyReport
	store *pagestore.Store
	names map[uint32]string
}

func (v *verifier) run() {
	if err := v.store.Check(); err != nil {
		v.r.problem("page store", err)
	}
	b, err := v.store.Get([]byte{keyManifest}, nil)
	if counter.KindOf(err) == counter.ErrNotFound {
		return // never checkpointed: all is in the journal
	}
	if err == nil {
		var m manifest
		if m, err = checkManifest(b); err == nil {
			v.r.Checkpoint = m.Journal
		}
	}
	if err != nil {
		v.r.problem("manifest", err)
		return
	}
	v.names = map[uint32]string{}
	v.scan(keyNamespace, func(key, val []byte) error {
		rec, _, err := parseNamespaceRecord(val)
		if err == nil && !bytes.Equal(key, namespaceKey(rec.Number)) {
			err = fmt.Errorf("it defines namespace %d: %w", rec.Number, counter.ErrCorrupt)
		}
		v.names[rec.Number] = rec.Name
		v.r.Namespaces++
		return err
	})
	v.tables()
	v.scan(keySession, func(_, val []byte) error {
		v.r.Sessions++
		if len(val) != 16 {
			return fmt.Errorf("%d bytes, want 16: %w", len(val), counter.ErrCorrupt)
		}
		return nil
	})
	v.scan(keyToken, func(key, val []byte) error {
		if len(key) != 18 || len(val)%tokenEntryBytes != 0 {
			return fmt.Errorf("key of %d and value of %d bytes: %w", len(key), len(val), counter.ErrCorrupt)
		}
		v.r.Tokens += int64(len(val) / tokenEntryBytes)
		return nil
	})
}

// scan walks the keys of one kind; what check finds wrong is a problem at that key.
func (v *verifier) scan(kind byte, check func(key, val []byte) error) {
	err := v.store.Scan([]byte{kind}, func(key, val []byte) error {
		if err := check(key, val); err != nil {
			v.r.problem(fmt.Sprintf("page store key %q", key), err)
		}
		return nil
	})
	if err != nil {
		v.r.problem("page store", err)
	}
}

// tables walks directory and pages side by side: every page that the directory
// names must be there, with rows inside its bounds, as many as its chunk counts.
func (v *verifier) tables() {
	var key, val []byte // the chunk whose upper bound the next one tells
	check := func(upper []byte) {
		if key == nil {
			return
		}
		if err := v.chunk(key, val, upper); err != nil {
			v.r.problem(fmt.Sprintf("page store key %q", key), err)
		}
	}
	v.scan(keyChunk, func(k, data []byte) error {
		if len(k) < 7 {
			return fmt.Errorf("a directory key of %d bytes: %w", len(k), counter.ErrCorrupt)
		}
		if key != nil && bytes.Equal(key[:7], k[:7]) { // same table, same tree
			check(k[6:])
		} else {
			check(nil)
		}
		key, val = bytes.Clone(k), bytes.Clone(data)
		return nil
	})
	check(nil)
	v.strays()
}

// chunk checks one chunk and its pages, which end below upper.
func (v *verifier) chunk(key, val, upper []byte) error {
	ns, part, name, err := parseTableKey(key, 1<<partitionBits)
	if err != nil {
		return err
	}
	if _, ok := v.names[ns]; !ok {
		return fmt.Errorf("directory of namespace %d, which is not defined: %w", ns, counter.ErrCorrupt)
	}
	pages, rows, err := table.CheckChunk(name, val)
	if err != nil {
		return err
	}
	var found int64
	prefix := pagePrefix(ns, part)
	for i, page := range pages {
		bound := upper
		if i+1 < len(pages) {
			bound = pages[i+1]
		}
		data, err := v.store.Get(append(bytes.Clone(prefix), page...), nil)
		if err == nil {
			var n int
			n, err = table.CheckPage(page, bound, data)
			found += int64(n)
		}
		v.r.Pages++
		v.r.PageBytes += int64(len(data))
		if err != nil {
			v.r.problem(fmt.Sprintf("namespace %q, partition %d, page %q", v.names[ns], part, page), err)
		}
	}
	v.r.Objects += found
	if found != rows {
		return fmt.Errorf("its pages hold %d objects, the directory counts %d: %w", found, rows, counter.ErrCorrupt)
	}
	return nil
}

// strays finds pages that no directory names.
func (v *verifier) strays() {
	named := map[string]bool{}
	var table6 string
	v.scan(keyPage, func(key, _ []byte) error {
		ns, part, name, err := parseTableKey(key, 1<<partitionBits)
		if err != nil {
			return err
		}
		if table6 != string(key[:6]) {
			table6 = string(key[:6])
			clear(named)
			err := v.store.Scan(tablePrefix(keyChunk, ns, part), func(ck, val []byte) error {
				pages, _, err := table.CheckChunk(ck[6:], val)
				for _, p := range pages {
					named[string(p)] = true
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		if !named[string(name)] {
			return fmt.Errorf("a page that its directory does not name: %w", counter.ErrCorrupt)
		}
		return nil
	})
}

// CutJournal drops everything in the journal of dir from position at on, which a
// Verify named: the way out when acknowledged records are damaged. The dropped
// bytes stay beside the journal in *.cut files. It returns where the journal ends.
func CutJournal(dir string, at Pos) (end Pos, err error) {
	lock, err := lockDir(dir)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	e := &Engine{dir: dir}
	return journal.Cut(nil, e.journalDir(), at)
}
