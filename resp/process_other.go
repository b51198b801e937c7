//go:build !unix

package resp

import "runtime"

// cpuSeconds is not known on this system.
func cpuSeconds() (system, user float64) { return 0, 0 }

// residentBytes is what the Go runtime has taken from the system.
func residentBytes() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}
