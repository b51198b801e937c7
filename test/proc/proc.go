// Package proc starts real servers, Tally and Redis, as child processes, each on
// a free port of 127.0.0.1 with its data in a folder of the caller's, and meters
// them. Test suites and benchmarks share it. A Server belongs to one goroutine.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/tally-counter/tally/test/wire"
)

// readyMax is how long a server may take to answer its first PING; loading a
// large Redis data set is the slowest thing anyone starts here.
const readyMax = 5 * time.Minute

// stopMax is how long a server may take to stop when asked to.
const stopMax = time.Minute

// Server is a running server.
type Server struct {
	Name  string        // "tally" or "redis", for messages
	Addr  string        // host:port
	Start time.Duration // from starting the process to its first answer

	began  time.Time
	cmd    *exec.Cmd
	output *tail
	exited chan struct{} // closed once the process has been waited for
}

// Tally starts `tally serve` with its data in dir and waits until it answers. args
// are further flags.
func Tally(dir string, args ...string) (*Server, error) {
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	s, err := LaunchTally(dir, addr, args...)
	if err != nil {
		return nil, err
	}
	return s, s.Ready()
}

// LaunchTally starts `tally serve` on addr and does not wait: crash suites restart
// a server where it was, and kill it before it is ready.
func LaunchTally(dir, addr string, args ...string) (*Server, error) {
	program, err := Build()
	if err != nil {
		return nil, err
	}
	return launch("tally", addr, program, append([]string{"serve", "--data", dir, "--resp", addr}, args...)...)
}

// Redis starts a real redis-server without snapshots, with its data in dir. args
// are further pairs of the form "--appendonly", "yes".
func Redis(dir string, args ...string) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("proc: redis-server is not installed; run test/setup.sh: %w", err)
	}
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	s, err := launch("redis", addr, program, append([]string{"--bind", host, "--port", port, "--dir", dir, "--save", ""}, args...)...)
	if err != nil {
		return nil, err
	}
	return s, s.Ready()
}

var buildDir string // set once, by build

// build makes the tally program once in the life of this process.
var build = sync.OnceValues(func() (string, error) {
	var err error
	if buildDir, err = os.MkdirTemp("", "tally-build-"); err != nil {
		return "", err
	}
	program := filepath.Join(buildDir, "tally")
	cmd := exec.Command("go", "build", "-o", program, "github.com/tally-counter/tally/cmd/tally")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("proc: building cmd/tally: %w\n%s", err, out)
	}
	return program, nil
})

// Build returns the path of a tally built from this tree. Clean removes it.
func Build() (string, error) { return build() }

// Clean removes what Build made. Call it at the end of TestMain or main, when no
// other goroutine builds.
func Clean() { os.RemoveAll(buildDir) }

func launch(name, addr, program string, args ...string) (*Server, error) {
	s := &Server{Name: name, Addr: addr, output: &tail{}, exited: make(chan struct{})}
	s.cmd = exec.Command(program, args...)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	// A test that dies must not leave servers behind.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.began = time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.cmd.Wait()
		close(s.exited)
	}()
	return s, nil
}

// Ready waits until the server answers. A server that does not is killed.
func (s *Server) Ready() error {
	if err := s.ready(); err != nil {
		s.Kill()
		return fmt.Errorf("proc: %v: %w\n%s", s.cmd.Args, err, s.Output())
	}
	s.Start = time.Since(s.began)
	return nil
}

// ready waits until the server answers PING. A server that still loads its data
// answers with an error, and is not ready.
func (s *Server) ready() error {
	deadline := time.Now().Add(readyMax)
	for time.Now().Before(deadline) {
		select {
		case <-s.exited:
			return errors.New("it ended before it answered")
		case <-time.After(time.Millisecond):
		}
		if c, err := wire.Dial(s.Addr); err == nil {
			c.Deadline(deadline)
			v, err := c.Do("PING")
			c.Close()
			if err == nil && v == "PONG" {
				return nil
			}
		}
	}
	return fmt.Errorf("no answer within %v", readyMax)
}

// Kill ends the server with SIGKILL, as a crash would, and waits for its end.
func (s *Server) Kill() {
	s.cmd.Process.Kill()
	<-s.exited
}

// Stop asks the server to end (SIGTERM) and waits. It reports a server that ended
// with an error, or had to be killed.
func (s *Server) Stop() error {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(stopMax):
		s.Kill()
		return fmt.Errorf("proc: %s did not stop within %v\n%s", s.Name, stopMax, s.Output())
	}
	if !s.cmd.ProcessState.Success() {
		return fmt.Errorf("proc: %s stopped with %v\n%s", s.Name, s.cmd.ProcessState, s.Output())
	}
	return nil
}

// Exited tells whether the process has ended.
func (s *Server) Exited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// Output returns the end of what the server printed.
func (s *Server) Output() string { return s.output.String() }

// PID is the server's process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// FreeAddr returns an address of 127.0.0.1 on which nothing listens.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return "127.0.0.1:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// tailBytesMax bounds what is kept of a server's output.
const tailBytesMax = 64 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if over := t.buf.Len() - tailBytesMax; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
