package resp

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tally-counter/tally/engine"
)

// stats are the server's own counts. Any goroutine may use them.
type stats struct {
	commands     atomic.Int64
	accepted     atomic.Int64
	rejected     atomic.Int64
	bytesIn      atomic.Int64
	bytesOut     atomic.Int64
	authFailures atomic.Int64
	errors       atomic.Int64

	mu       sync.Mutex // guards the rate between two calls of INFO
	rateAt   time.Time
	rateFrom int64
	rate     int64
}

func (s *stats) reset() {
	for _, n := range []*atomic.Int64{&s.accepted, &s.rejected, &s.bytesIn, &s.bytesOut, &s.authFailures, &s.errors} {
		n.Store(0)
	}
	s.mu.Lock()
	s.commands.Store(0)
	s.rateFrom, s.rateAt = 0, time.Now()
	s.mu.Unlock()
}

// perSecond is the rate of commands since it was last asked, at least a second ago.
func (s *stats) perSecond(now time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if span := now.Sub(s.rateAt); span >= time.Second {
		total := s.commands.Load()
		s.rate = int64(float64(total-s.rateFrom) / span.Seconds())
		s.rateAt, s.rateFrom = now, total
	}
	return s.rate
}

// infoSections are the sections of INFO in their order.
var infoSections = []struct {
	name  string
	title string
	write func(b *strings.Builder, s *Server, e *engine.Stats)
}{
	{"server", "Server", infoServer},
	{"clients", "Clients", infoClients},
	{"memory", "Memory", infoMemory},
	{"persistence", "Persistence", infoPersistence},
	{"stats", "Stats", infoStats},
	{"replication", "Replication", infoReplication},
	{"cpu", "CPU", infoCPU},
	{"cluster", "Cluster", infoCluster},
	{"keyspace", "Keyspace", infoKeyspace},
	{"tally", "Tally", infoTally},
}

func infoCommand(c *conn, args [][]byte) error {
	want := map[string]bool{}
	for _, a := range args[1:] {
		want[strings.ToLower(string(a))] = true
	}
	all := len(want) == 0 || want["all"] || want["default"] || want["everything"]
	figures := c.engine.Stats()
	var b strings.Builder
	for _, section := range infoSections {
		if all || want[section.name] {
			if b.Len() > 0 {
				b.WriteString("\r\n")
			}
			fmt.Fprintf(&b, "# %s\r\n", section.title)
			section.write(&b, c.server, &figures)
		}
	}
	c.w.text(b.String())
	return nil
}

func line(b *strings.Builder, name string, value any) { fmt.Fprintf(b, "%s:%v\r\n", name, value) }

func infoServer(b *strings.Builder, s *Server, _ *engine.Stats) {
	up := time.Since(s.started)
	line(b, "redis_version", redisVersion)
	line(b, "tally_version", s.opts.Version)
	line(b, "redis_mode", "standalone")
	line(b, "os", runtime.GOOS+" "+runtime.GOARCH)
	line(b, "arch_bits", 64)
	line(b, "go_version", runtime.Version())
	line(b, "process_id", os.Getpid())
	line(b, "run_id", s.runID)
	line(b, "tcp_port", s.port())
	line(b, "server_time_usec", time.Now().UnixMicro())
	line(b, "uptime_in_seconds", int64(up/time.Second))
	line(b, "uptime_in_days", int64(up/(24*time.Hour)))
}

func infoClients(b *strings.Builder, s *Server, _ *engine.Stats) {
	line(b, "connected_clients", s.connected())
	line(b, "maxclients", s.opts.ConnectionsMax)
	line(b, "blocked_clients", 0)
}

func infoMemory(b *strings.Builder, _ *Server, e *engine.Stats) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	rss := residentBytes()
	line(b, "used_memory", rss)
	line(b, "used_memory_human", human(rss))
	line(b, "used_memory_rss", rss)
	line(b, "used_memory_rss_human", human(rss))
	line(b, "used_memory_go_heap", m.HeapAlloc)
	line(b, "maxmemory", 0)
	line(b, "maxmemory_policy", "noeviction")
	line(b, "mem_allocator", "go")
	writeFigures(b, e, "memory_", "page", "directory_", "bytes_per_object", "evicted_")
}

func infoPersistence(b *strings.Builder, s *Server, e *engine.Stats) {
	saving := 0
	if s.saving.Load() {
		saving = 1
	}
	line(b, "loading", 0)
	line(b, "rdb_bgsave_in_progress", saving)
	line(b, "rdb_last_save_time", s.lastSave.Load())
	line(b, "aof_enabled", 1)
	writeFigures(b, e, "checkpoint", "journal", "recover", "writable", "problem")
}

func infoStats(b *strings.Builder, s *Server, _ *engine.Stats) {
	line(b, "total_connections_received", s.stats.accepted.Load())
	line(b, "total_commands_processed", s.stats.commands.Load())
	line(b, "instantaneous_ops_per_sec", s.stats.perSecond(time.Now()))
	line(b, "total_net_input_bytes", s.stats.bytesIn.Load())
	line(b, "total_net_output_bytes", s.stats.bytesOut.Load())
	line(b, "rejected_connections", s.stats.rejected.Load())
	line(b, "total_error_replies", s.stats.errors.Load())
	line(b, "acl_access_denied_auth", s.stats.authFailures.Load())
}

func infoReplication(b *strings.Builder, _ *Server, _ *engine.Stats) {
	line(b, "role", "master")
	line(b, "connected_slaves", 0)
}

func infoCPU(b *strings.Builder, _ *Server, _ *engine.Stats) {
	system, user := cpuSeconds()
	line(b, "used_cpu_sys", fmt.Sprintf("%.6f", system))
	line(b, "used_cpu_user", fmt.Sprintf("%.6f", user))
}

func infoCluster(b *strings.Builder, _ *Server, _ *engine.Stats) { line(b, "cluster_enabled", 0) }

// infoKeyspace has the line that tools parse. How many objects expire is not
// counted, so it says 0.
func infoKeyspace(b *strings.Builder, s *Server, _ *engine.Stats) {
	if n := s.engine.Objects(); n > 0 {
		line(b, "db0", fmt.Sprintf("keys=%d,expires=0,avg_ttl=0", n))
	}
}

// infoTally has every figure of the engine.
func infoTally(b *strings.Builder, _ *Server, e *engine.Stats) { writeFigures(b, e, "") }

func writeFigures(b *strings.Builder, e *engine.Stats, prefixes ...string) {
	for _, f := range figures(e) {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f.name, p) }) {
			line(b, f.name, f.value)
		}
	}
}

// figure is one of the engine's statistics; those of its parts are named
// part_figure.
type figure struct {
	name  string
	value any // int64, float64, bool or string
}

// figures flattens the engine's statistics by way of their JSON form, so that
// what the engine learns to count is shown without a change here.
func figures(e *engine.Stats) []figure {
	text, err := json.Marshal(e)
	if err != nil {
		return []figure{{"error", err.Error()}}
	}
	var tree map[string]any
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return []figure{{"error", err.Error()}}
	}
	return flatten(nil, "", tree)
}

func flatten(to []figure, prefix string, tree map[string]any) []figure {
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		switch v := tree[name].(type) {
		case map[string]any:
			to = flatten(to, prefix+name+"_", v)
		case json.Number:
			if n, err := v.Int64(); err == nil {
				to = append(to, figure{prefix + name, n})
			} else if f, err := v.Float64(); err == nil {
				to = append(to, figure{prefix + name, f})
			}
		case bool, string:
			to = append(to, figure{prefix + name, v})
		}
	}
	return to
}

// writeMap writes figures as a map.
func (w *writer) figures(all []figure) {
	w.dict(len(all))
	for _, f := range all {
		w.bulkString(f.name)
		switch v := f.value.(type) {
		case int64:
			w.int(v)
		case float64:
			w.double(v)
		case bool:
			w.flag(v)
		case string:
			w.bulkString(v)
		}
	}
}

func (c *conn) memoryStats() {
	e := c.engine.Stats()
	all := []figure{{"total.allocated", residentBytes()}, {"keys.count", c.engine.Objects()}}
	for _, f := range figures(&e) {
		if strings.Contains(f.name, "bytes") || strings.HasPrefix(f.name, "page") {
			all = append(all, f)
		}
	}
	c.w.figures(all)
}

// human writes bytes as Redis does: 1.50M.
func human(n int64) string {
	f, unit := float64(n), "B"
	for _, u := range []string{"K", "M", "G", "T"} {
		if f < 1024 {
			break
		}
		f, unit = f/1024, u
	}
	return fmt.Sprintf("%.2f%s", f, unit)
}

// buildVersion is the version this program was built as.
func buildVersion() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}
