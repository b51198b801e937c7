package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tally": main})
}

// TestScripts runs testdata/script. Besides testscript's commands there are
//
//	server [flag …]      starts `tally serve` on a free port with its data in ./data
//	shut, crash          end it with SIGTERM (it must exit with 0), or SIGKILL
//	code N prog arg …    runs prog, which must exit with N; its output goes to the files out and err
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"server": serverCommand,
			"shut":   func(ts *testscript.TestScript, _ bool, _ []string) { endServer(ts, syscall.SIGTERM) },
			"crash":  func(ts *testscript.TestScript, _ bool, _ []string) { endServer(ts, syscall.SIGKILL) },
			"code":   codeCommand,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("TALLY_ADDR", "127.0.0.1:1") // nobody, until a server is started
			env.Values[serverKey{}] = new(*server)
			return nil
		},
	})
}

type serverKey struct{}

// server is a running `tally serve`.
type server struct {
	cmd  *exec.Cmd
	addr string
	log  string // file
	done chan error
}

var addrPattern = regexp.MustCompile(`msg="serving the Redis protocol" addr=(\S+)`)

// startServer runs `tally serve` and returns when it serves.
func startServer(dir string, flags ...string) (*server, error) {
	cmd := exec.Command("tally", append([]string{"serve", "--data", dir, "--resp=127.0.0.1:0"}, flags...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, done: make(chan error, 1)}
	lines := bufio.NewReader(stderr)
	for s.addr == "" {
		line, err := lines.ReadString('\n')
		s.log += line
		if err != nil {
			return s, errors.Join(errors.New("the server ended: "+s.log), cmd.Wait())
		}
		if m := addrPattern.FindStringSubmatch(line); m != nil {
			s.addr = m[1]
		}
	}
	go func() {
		rest, _ := io.ReadAll(lines)
		s.log += string(rest)
		s.done <- cmd.Wait()
	}()
	return s, nil
}

// end sends a signal and waits for the end.
func (s *server) end(sig syscall.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil {
		return err
	}
	err := <-s.done
	if sig == syscall.SIGKILL {
		return nil
	}
	return err
}

func serverCommand(ts *testscript.TestScript, _ bool, flags []string) {
	running := ts.Value(serverKey{}).(**server)
	if *running != nil {
		ts.Fatalf("a server runs already")
	}
	s, err := startServer(ts.MkAbs("data"), flags...)
	ts.Check(err)
	*running = s
	ts.Setenv("TALLY_ADDR", s.addr)
	ts.Defer(func() {
		if *running == s {
			_ = s.end(syscall.SIGKILL)
		}
	})
}

func endServer(ts *testscript.TestScript, sig syscall.Signal) {
	running := ts.Value(serverKey{}).(**server)
	s := *running
	if s == nil {
		ts.Fatalf("no server runs")
	}
	*running = nil
	if err := s.end(sig); err != nil {
		ts.Fatalf("%v\n%s", err, s.log)
	}
	ts.Check(os.WriteFile(ts.MkAbs("log"), []byte(s.log), 0o644))
}

func codeCommand(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	out, err := os.Create(ts.MkAbs("out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(ts.MkAbs("err"))
	ts.Check(err)
	defer errs.Close()
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "TALLY_ADDR="+ts.Getenv("TALLY_ADDR"), "TALLY_PASSWORD="+ts.Getenv("TALLY_PASSWORD"))
	cmd.Stdout, cmd.Stderr = out, errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit code %d, want %d; stderr: %s", got, want, ts.ReadFile("err"))
	}
}
