package proc

import (
	"testing"

	"github.com/tally-counter/tally/test/wire"
)

func TestRedis(t *testing.T) {
	s, err := Redis(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	c, err := wire.Dial(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 100_000 {
		c.Append("INCR", "a")
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	for range 100_000 {
		if err := c.Skip(); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := c.Do("GET", "a"); err != nil || v != "100000" {
		t.Errorf("GET a = %v, %v", v, err)
	}
	if cpu, err := s.CPU(); err != nil || cpu <= 0 {
		t.Errorf("CPU = %v, %v", cpu, err)
	}
	if rss, err := s.RSS(); err != nil || rss < 1<<20 {
		t.Errorf("RSS = %v, %v", rss, err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if !s.Exited() {
		t.Error("the server still runs after Stop")
	}
}

func TestStartFails(t *testing.T) {
	if s, err := Redis(t.TempDir(), "--no-such-option", "1"); err == nil {
		s.Kill()
		t.Error("a server with a bad option was called ready")
	}
}
