package clients

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tally-counter/tally/test/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.Clean()
	os.Exit(code)
}

// client is a program that runs commands from its input: `args… ADDR MODE`.
type client struct {
	name  string
	args  func(t *testing.T) []string
	modes []string
	// replies reads the program's output; nil: one line of leaves a reply.
	replies func(output string) ([]string, error)
}

var clients = []client{
	{"go-redis", goProgram("goredis"), []string{"one", "pipeline"}, nil},
	{"rueidis", goProgram("rueidis"), []string{"one", "pipeline"}, nil},
	{"redis-py", python, []string{"one", "pipeline"}, nil},
	{"jedis", java, []string{"one", "pipeline"}, nil},
	{"ioredis", node, []string{"one", "pipeline"}, nil},
	{"redis-cli", redisCLI, []string{""}, cliReplies},
}

// TestScript runs the same script through every client against Tally; against
// Redis too, the part that Redis knows, so that the script cannot ask for what
// Redis would answer otherwise.
func TestScript(t *testing.T) {
	shared, err := readScript("redis.script")
	if err != nil {
		t.Fatal(err)
	}
	own, err := readScript("redis.script", "tally.script")
	if err != nil {
		t.Fatal(err)
	}
	redis, err := proc.Redis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Kill()

	for _, c := range clients {
		args := c.args(t)
		for _, mode := range c.modes {
			t.Run(strings.TrimSuffix(c.name+"/"+mode, "/"), func(t *testing.T) {
				c.run(t, args, mode, redis, shared)
				// A new server each time: it remembers tokens and sessions.
				tally, err := proc.Tally(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				defer tally.Kill()
				c.run(t, args, mode, tally, own)
				if err := tally.Stop(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func (c client) run(t *testing.T, args []string, mode string, server *proc.Server, steps []step) {
	t.Helper()
	full := append([]string{}, args[1:]...)
	if c.name == "redis-cli" {
		host, port, err := net.SplitHostPort(server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		full = append(full, "-h", host, "-p", port)
	} else {
		full = append(full, server.Addr, mode)
	}
	cmd := exec.CommandContext(t.Context(), args[0], full...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(cache(t), "node", "node_modules"))
	cmd.Stdin = strings.NewReader(commands(steps))
	var errors strings.Builder
	cmd.Stderr = &errors
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s with %s: %v\n%s%s", c.name, server.Name, err, output, errors.String())
	}
	read := c.replies
	if read == nil {
		read = func(output string) ([]string, error) {
			return strings.Split(strings.TrimSuffix(output, "\n"), "\n"), nil
		}
	}
	replies, err := read(string(output))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range check(steps, replies) {
		t.Errorf("%s: %s", server.Name, wrong)
	}
}

// benchmarkMax bounds one run of redis-benchmark, which goes on for ever when a
// reply is missing.
const benchmarkMax = time.Minute

// TestRedisBenchmark: the benchmark that comes with Redis runs against Tally
// without an error. (Its own tests of SET and HSET store text, which a counter
// refuses; these store numbers.)
func TestRedisBenchmark(t *testing.T) {
	server, err := proc.Tally(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	host, port, err := net.SplitHostPort(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []string{
		"-t ping,incr,get",
		"-t incr,get -P 16",
		"SET key:__rand_int__ 5",
		"HINCRBY post:__rand_int__ like 1",
		"HGETALL post:__rand_int__",
		"-P 16 -3 HMGET post:__rand_int__ like view",
	} {
		args := append([]string{"-h", host, "-p", port, "-n", "5000", "-r", "1000", "-q"}, strings.Fields(test)...)
		ctx, cancel := context.WithTimeout(t.Context(), benchmarkMax)
		output, err := exec.CommandContext(ctx, program(t, "redis-benchmark"), args...).CombinedOutput()
		cancel()
		// It rewrites one line over and over; the last state is enough.
		lines := strings.Split(strings.TrimSpace(string(output)), "\r")
		text := lines[len(lines)-1]
		if err != nil || strings.Contains(text, "rror") || strings.Contains(text, "WARN") || !strings.Contains(text, "requests per second") {
			t.Errorf("redis-benchmark %s: %v\n%s", test, err, text)
		}
	}
}

func goProgram(name string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		binary := filepath.Join(t.TempDir(), name)
		if out, err := exec.Command("go", "build", "-o", binary, "./"+name).CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", name, err, out)
		}
		return []string{binary}
	}
}

func python(t *testing.T) []string {
	return []string{cached(t, "python/bin/python"), "python/main.py"}
}

func java(t *testing.T) []string {
	classes := filepath.Join(t.TempDir(), "classes")
	libraries := filepath.Join(cached(t, "java"), "*")
	if out, err := exec.Command(program(t, "javac"), "-cp", libraries, "-d", classes, "java/Main.java").CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	return []string{program(t, "java"), "-cp", libraries + ":" + classes, "Main"}
}

func node(t *testing.T) []string {
	cached(t, "node/node_modules/ioredis")
	return []string{program(t, "node"), "node/main.js"}
}

func redisCLI(t *testing.T) []string { return []string{program(t, "redis-cli"), "--no-raw"} }

// program finds an installed program, or fails the test.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed; run test/setup.sh", name)
	}
	return path
}

// cached finds what test/setup.sh installs for the clients, or fails the test.
func cached(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(cache(t), name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing; run test/setup.sh", path)
	}
	return path
}

func cache(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("TALLY_TEST_CACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(fmt.Errorf("where test/setup.sh installed the clients is not known: %w", err))
	}
	return filepath.Join(dir, "tally-test")
}
