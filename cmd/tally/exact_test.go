package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/remote"
)

// realFile returns a file of real input: from TALLY_TEST_DATA, or from the
// folder shared/data beside the module. Where there is none the test says so and
// runs on a file that generate makes.
func realFile(t *testing.T, name string, generate func(*strings.Builder)) string {
	t.Helper()
	for _, dir := range []string{os.Getenv("TALLY_TEST_DATA"), filepath.Join("..", "..", "..", "shared", "data")} {
		path, err := filepath.Abs(filepath.Join(dir, name))
		if _, statErr := os.Stat(path); dir != "" && err == nil && statErr == nil {
			return path
		}
	}
	var b strings.Builder
	generate(&b)
	t.Logf("no %s in TALLY_TEST_DATA or ../shared/data: testing with %d bytes of generated rows instead", name, b.Len())
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// seeded returns a source of randomness whose seed is in the test's output.
func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func weblog(t *testing.T) string {
	return realFile(t, "weblog.tsv", func(b *strings.Builder) {
		r := seeded(t)
		b.WriteString("unix_seconds\tvisitor\tpath\tstatus\n")
		for i := range 10_000 {
			fmt.Fprintf(b, "%d\t%08x\t/p:%d/{x}?q=%%20\\n\"\t200\n", 1431857100+i, r.Uint32(), r.IntN(r.IntN(1500)+1))
		}
		fmt.Fprintf(b, "1431867100\tx\t/%s\t200\n", strings.Repeat("long", 200))
	})
}

func downloads(t *testing.T) string {
	return realFile(t, "package-downloads.tsv", func(b *strings.Builder) {
		r := seeded(t)
		b.WriteString("package\tdownloads_a_month\n")
		for i := range 100_000 {
			fmt.Fprintf(b, "@scope-%d/package.%d\t%d\n", i%100, i, int64(2e9)/int64(i+1)+r.Int64N(9))
		}
	})
}

// awk runs a program over a file and returns its "key<TAB>number" lines, but for
// keys longer than an id may be, which it counts.
func awk(t *testing.T, program, file string) (want map[string]int64, tooLong int64) {
	t.Helper()
	cmd := exec.Command("awk", "-F", "\t", program, file)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("awk: %v", err)
	}
	want = map[string]int64{}
	for line := range strings.Lines(string(out)) {
		key, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatalf("awk wrote %q", line)
		}
		if len(key) > counter.IDBytesMax {
			tooLong += n
			continue
		}
		want[key] = n
	}
	return want, tooLong
}

const (
	awkViews     = `NR > 1 { n[$3]++ } END { for (p in n) print p "\t" n[p] }`
	awkDownloads = `NR > 1 { print $1 "\t" $2 }`
)

// serve starts a server for a test.
func serve(t *testing.T, dir string, flags ...string) *server {
	t.Helper()
	s, err := startServer(dir, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	return s
}

// tally runs the program against a server.
func tally(t *testing.T, addr string, args ...string) (stdout string) {
	t.Helper()
	var out, errs strings.Builder
	cmd := exec.Command("tally", args...)
	cmd.Env = append(os.Environ(), "TALLY_ADDR="+addr)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("tally %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

// exported reads a namespace back, by `tally export`.
func exported(t *testing.T, addr, namespace string) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	for i, line := range strings.Split(strings.TrimSuffix(tally(t, addr, "export", namespace), "\n"), "\n") {
		f := strings.Split(line, "\t")
		if i == 0 || len(f) != 3 {
			continue
		}
		n, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			t.Fatalf("export wrote %q", line)
		}
		got[f[0]] = n
	}
	return got
}

func same(t *testing.T, got, want map[string]int64) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	shownMax := 5
	for k, n := range want {
		if got[k] != n && shownMax > 0 {
			shownMax--
			t.Errorf("%.80q is %d, awk says %d", k, got[k], n)
		}
	}
	t.Errorf("%d objects, awk says %d", len(got), len(want))
}

// TestRealInput: every count of the real files is what awk says.
func TestRealInput(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "data"))
	log, packages := weblog(t), downloads(t)

	want, tooLong := awk(t, awkViews, log)
	t.Logf("%d rows name a path longer than %d bytes and are bad rows", tooLong, counter.IDBytesMax)
	for range 2 { // the second time changes nothing
		out := tally(t, s.addr, "import", log, "--namespace", "page", "--id", "path", "--counter", "view", "--json")
		if !strings.Contains(out, fmt.Sprintf(`"rejected":%d,`, tooLong)) {
			t.Errorf("%d bad rows wanted: %s", tooLong, out)
		}
		same(t, exported(t, s.addr, "page"), want)
	}
	asked := 0
	for path, n := range want { // one by one, as a client asks for it: all would take long
		if asked++; asked > 20 {
			break
		}
		k := counter.Key{Namespace: "page", ID: counter.ParseID(path)}
		if got := strings.TrimSpace(tally(t, s.addr, "get", k.String(), "view")); got != strconv.FormatInt(n, 10) {
			t.Errorf("%s is %s, awk says %d", k, got, n)
		}
	}

	want, _ = awk(t, awkDownloads, packages)
	tally(t, s.addr, "import", packages, "--as", "values", "--namespace", "package", "--id", "package", "--value", "downloads_a_month", "--strict")
	same(t, exported(t, s.addr, "package"), want)
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
}

// TestImportThroughKills: server and client are killed in the middle of an
// import, again and again, until one comes through; then every count is what awk
// says.
func TestImportThroughKills(t *testing.T) {
	log := manyDays(t, weblog(t), 8)
	want, _ := awk(t, awkViews, log)
	for _, exact := range [][]string{nil, {"--tokens"}} {
		t.Run(fmt.Sprint("import", exact), func(t *testing.T) {
			rnd := seeded(t)
			dir := filepath.Join(t.TempDir(), "data")
			s := serve(t, dir, "--memory", "64MiB")
			servers, clients := 0, 0
			for done := false; !done; {
				run := startImport(t, s.addr, append([]string{log, "--namespace", "page", "--id", "path", "--counter", "view"}, exact...))
				for run.until(t, s, 1+rnd.Int64N(400_000)) {
					if rnd.IntN(2) == 0 { // the import goes on by itself when the server is back
						_ = s.end(syscall.SIGKILL)
						s = serve(t, dir, "--memory", "64MiB", "--resp", s.addr)
						servers++
					} else {
						_ = run.cmd.Process.Kill()
						clients++
						run.killed = true
					}
				}
				if err := <-run.ended; err == nil {
					done = true
					t.Logf("%s; %d servers and %d clients were killed", lastLine(run.output.String()), servers, clients)
				} else if !run.killed {
					t.Fatalf("%v\n%s\nserver: %s", err, run.output.String(), s.log)
				}
			}
			if servers+clients == 0 {
				t.Error("nobody was killed; the import is too short for this test")
			}
			same(t, exported(t, s.addr, "page"), want)
		})
	}
}

// importRun is an import as a process.
type importRun struct {
	cmd    *exec.Cmd
	output strings.Builder
	ended  chan error
	killed bool
}

func startImport(t *testing.T, addr string, args []string) *importRun {
	t.Helper()
	run := &importRun{cmd: exec.Command("tally", append([]string{"import"}, args...)...), ended: make(chan error, 1)}
	run.cmd.Env = append(os.Environ(), "TALLY_ADDR="+addr)
	run.cmd.Stdout, run.cmd.Stderr = &run.output, &run.output
	if err := run.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { run.ended <- run.cmd.Wait() }()
	return run
}

// until waits until the server's journal has grown by so many bytes; false when
// the import ended before.
func (run *importRun) until(t *testing.T, s *server, bytes int64) bool {
	t.Helper()
	c := remote.New(remote.Options{Addr: s.addr})
	defer c.Close()
	for first := int64(-1); ; {
		select {
		case err := <-run.ended:
			run.ended <- err
			return false
		default:
		}
		stats, err := c.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end := stats["journal_end"].(int64)
		if first < 0 {
			first = end
		}
		if end-first >= bytes && !run.killed {
			return true
		}
	}
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// manyDays repeats the rows of a log, so that there is time to kill somebody.
func manyDays(t *testing.T, log string, n int) string {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	header, rows, _ := strings.Cut(string(b), "\n")
	path := filepath.Join(t.TempDir(), "days.tsv")
	if err := os.WriteFile(path, []byte(header+"\n"+strings.Repeat(rows, n)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
