//go:build unix

package resp

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// cpuSeconds is the processor time this process has used.
func cpuSeconds() (system, user float64) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return float64(u.Stime.Nano()) / 1e9, float64(u.Utime.Nano()) / 1e9
}

// residentBytes is the memory this process occupies; where the system does not
// say, what the Go runtime has taken from it.
func residentBytes() int64 {
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}
