// Package arch holds the architecture as a test: which package may import which.
package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/tally-counter/tally"
	root   = "../.."
)

// arrows lists every package of the product, from the top down, with those of
// ours that it may import. A new package or arrow is a decision: it is made here.
var arrows = map[string][]string{
	"cmd/tally":        {"resp", "offline", "remote", "transfer", "engine", "counter"},
	"resp":             {"engine", "counter"},
	"offline":          {"transfer", "engine", "counter"},
	"remote":           {"transfer", "counter"},
	"transfer":         {"counter"},
	"engine":           {"table", "journal", "pagestore", "counter"},
	"table":            {"counter"},
	"journal":          {"counter"},
	"pagestore":        {"counter"},
	"counter":          nil,
	"internal/faultfs": {"journal", "pagestore", "counter"}, // faults for tests; no product package may import it
}

// homes names the folders that may speak a library whose types must not spread.
var homes = map[string][]string{
	"github.com/cockroachdb/pebble": {"pagestore", "internal/faultfs"},
	"github.com/redis/rueidis":      {"remote", "test/clients"},
	"github.com/redis/go-redis":     {"test/clients"},
	"github.com/alecthomas/kong":    {"cmd/tally"},
}

// TestArrows: the product's packages import each other only along the arrows.
// What stands beside the product (bench, test) may import any of it, and no
// product package imports them.
func TestArrows(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.isTest || beside(f.pkg) {
			continue
		}
		allowed, known := arrows[f.pkg]
		if !known {
			t.Errorf("%s: package %s is not in the list of arrows; add it with what it may import", f.path, f.pkg)
			continue
		}
		seen[f.pkg] = true
		for _, imported := range f.imports {
			to, ours := strings.CutPrefix(imported, module+"/")
			if ours && !slices.Contains(allowed, to) {
				t.Errorf("%s: %s may not import %s", f.path, f.pkg, to)
			}
		}
	}
	for pkg := range arrows {
		if !seen[pkg] {
			t.Errorf("the list of arrows names package %s, which does not exist; remove it", pkg)
		}
	}
}

// TestDownhill: the list of arrows itself has no way round in a circle.
func TestDownhill(t *testing.T) {
	done := map[string]bool{}
	var visit func(pkg string, trail []string)
	visit = func(pkg string, trail []string) {
		if slices.Contains(trail, pkg) {
			t.Fatalf("arrows run in a circle: %s", strings.Join(append(trail, pkg), " → "))
		}
		if done[pkg] {
			return
		}
		for _, to := range arrows[pkg] {
			if _, known := arrows[to]; !known {
				t.Errorf("%s may import %s, which the list does not name", pkg, to)
			}
			visit(to, append(trail, pkg))
		}
		done[pkg] = true
	}
	for pkg := range arrows {
		visit(pkg, nil)
	}
}

// TestHomes: a library's types stay in the folder that speaks it.
func TestHomes(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, imported := range f.imports {
			for library, folders := range homes {
				if !within(imported, library) || f.isTest && !strings.HasSuffix(library, "/pebble") {
					continue
				}
				if !slices.ContainsFunc(folders, func(folder string) bool { return within(f.pkg, folder) }) {
					t.Errorf("%s: %s belongs to %s", f.path, imported, strings.Join(folders, ", "))
				}
			}
		}
	}
}

// beside tells whether pkg stands beside the product.
func beside(pkg string) bool { return within(pkg, "bench") || within(pkg, "test") }

// within tells whether path is folder or lies below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

type goFile struct {
	path, pkg string // pkg: its folder, from the module's root
	isTest    bool
	imports   []string
}

// goFiles reads every Go file of the module, whatever its build tags.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f := goFile{path: rel, pkg: filepath.ToSlash(filepath.Dir(rel)), isTest: strings.HasSuffix(rel, "_test.go")}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported)
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go files found: the test looks in the wrong place")
	}
	return files
}
