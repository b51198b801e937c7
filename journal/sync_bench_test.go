package journal_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/tally-counter/tally/journal"
)

// BenchmarkSync compares ways to have a segment's file ready: what a commit of
// 700 bytes, written and synced, costs in each. On ext4 the last three differed
// by less than two runs of one, also beside a writer of tables, so segments are
// preallocated: that alone costs no second writing and leaves no old bytes.
func BenchmarkSync(b *testing.B) {
	const size = 64 << 20
	fill := func(b *testing.B, f File, with byte) {
		chunk := slices.Repeat([]byte{with}, 1<<20)
		for off := int64(0); off < size; off += int64(len(chunk)) {
			if _, err := f.WriteAt(chunk, off); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, way := range []struct {
		name    string
		prepare func(b *testing.B, f File)
	}{
		{"growing", func(*testing.B, File) {}},
		{"preallocated", func(b *testing.B, f File) {
			if err := f.Preallocate(size); err != nil {
				b.Fatal(err)
			}
		}},
		{"zero-filled", func(b *testing.B, f File) { fill(b, f, 0) }},
		{"recycled", func(b *testing.B, f File) { fill(b, f, 'x') }},
	} {
		b.Run(way.name, func(b *testing.B) {
			f, err := OS.Create(filepath.Join(b.TempDir(), "segment"))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			way.prepare(b, f)
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			block := make([]byte, 700)
			times := make([]time.Duration, 0, b.N)
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				start := time.Now()
				if _, err := f.WriteAt(block, int64(i*len(block))%(size-700)); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(start))
			}
			b.StopTimer()
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1e3, "µs-p50")
			b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1e3, "µs-p99")
		})
	}
}
