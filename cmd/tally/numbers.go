package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// shieldNumbers puts a space before negative numbers, so that the parser does
// not take them for flags; unshield cuts it off.
func shieldNumbers(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		if digits, ok := strings.CutPrefix(arg, "-"); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			arg = " " + arg
		}
		out[i] = arg
	}
	return out
}

func unshield(s string) string { return strings.TrimPrefix(s, " ") }

// whole is a flag that holds a whole number of 64 bits.
type whole int64

func (w *whole) UnmarshalText(text []byte) error {
	n, err := parseWhole(string(text))
	*w = whole(n)
	return err
}

func parseWhole(s string) (int64, error) {
	s = unshield(s)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number within 64 bits", s)
	}
	return n, nil
}

// byteSize is a flag that holds bytes: 512MiB, 8GiB, 8G, 1000000. A unit without
// "i" is the binary one too, as people mean it about memory.
type byteSize int64

var byteUnits = []struct {
	suffix string
	shift  uint
}{{"kib", 10}, {"mib", 20}, {"gib", 30}, {"tib", 40}, {"kb", 10}, {"mb", 20}, {"gb", 30}, {"tb", 40}, {"k", 10}, {"m", 20}, {"g", 30}, {"t", 40}, {"b", 0}}

func (b *byteSize) UnmarshalText(text []byte) error {
	s, shift := strings.ToLower(strings.TrimSpace(string(text))), uint(0)
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			s, shift = strings.TrimSpace(rest), u.shift
			break
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n < 0 || math.IsNaN(n) || n*float64(int64(1)<<shift) >= math.MaxInt64 {
		return fmt.Errorf("%q is not a size; write for example 512MiB or 8GiB", text)
	}
	*b = byteSize(n * float64(int64(1)<<shift))
	return nil
}

// bytesText writes bytes for people.
func bytesText(n int64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if float64(n) >= u.size {
			return fmt.Sprintf("%.1f %s", float64(n)/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
