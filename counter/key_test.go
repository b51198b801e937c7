package counter

import (
	"errors"
	"math"
	"math/rand"
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	for _, c := range []struct{ in, ns, id string }{
		{"page", "default", "page"},
		{"post:1001", "post", "1001"},
		{"a:b:c", "a:b", "c"},
		{"post:", "post", ""},
		{"post:{a:b}", "post", "a:b"},
		{"post:{a}", "post", "{a}"},
		{"{a:b}", "default", "a:b"},
		{"default:x", "default", "x"},
		{"", "default", ""},
	} {
		k, err := ParseKey(c.in)
		if err != nil || k.Namespace != c.ns || k.ID.String() != c.id {
			t.Errorf("ParseKey(%q) = %q %q, %v; want %q %q", c.in, k.Namespace, k.ID, err, c.ns, c.id)
		}
	}
	for _, bad := range []string{":x", strings.Repeat("n", 256) + ":x", strings.Repeat("i", 513), "a:{b:c", "{a:b"} {
		if _, err := ParseKey(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("ParseKey(%.20q…): %v, want ErrInvalid", bad, err)
		}
	}
}

func TestIDIsCanonical(t *testing.T) {
	for _, s := range []string{"0", "7", "18446744073709551615", "1844674407370955161"} {
		if _, ok := ParseID(s).Int(); !ok {
			t.Errorf("%q is not read as an integer", s)
		}
	}
	for _, s := range []string{"", "00", "07", "+7", "-7", "18446744073709551616", "99999999999999999999", "7 ", "1e3", "184467440737095516150"} {
		if _, ok := ParseID(s).Text(); !ok {
			t.Errorf("%q is not read as a string", s)
		}
	}
}

// Every key has one written form and reads back as itself.
func TestKeyRoundTrip(t *testing.T) {
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	letters := []string{"a", ":", "{", "}", "1", "0", "default", "x"}
	word := func() string {
		var b strings.Builder
		for n := r.Intn(6); n > 0; n-- {
			b.WriteString(letters[r.Intn(len(letters))])
		}
		return b.String()
	}
	valid := 0
	for i := 0; i < 200_000; i++ {
		k := Key{word(), ParseID(word())}
		if k.Check() != nil {
			continue
		}
		valid++
		got, err := ParseKey(k.String())
		if err != nil || got != k {
			t.Fatalf("%#v is written %q and reads %#v, %v", k, k.String(), got, err)
		}
		// And what any text reads as is written as a text that reads the same.
		if s := word(); true {
			if a, err := ParseKey(s); err == nil {
				if b, err := ParseKey(a.String()); err != nil || a != b {
					t.Fatalf("%q reads %#v, written %q reads %#v, %v", s, a, a.String(), b, err)
				}
			}
		}
	}
	if valid < 1000 {
		t.Fatalf("only %d valid keys tried", valid)
	}
}

func TestSum(t *testing.T) {
	for _, c := range []struct {
		a, b, want int64
		ok         bool
	}{
		{1, 2, 3, true}, {-1, 1, 0, true}, {0, 0, 0, true},
		{math.MaxInt64, 1, 0, false}, {math.MinInt64, -1, 0, false},
		{math.MaxInt64, math.MinInt64, -1, true}, {math.MinInt64, math.MaxInt64, -1, true},
		{math.MinInt64, math.MinInt64, 0, false}, {math.MaxInt64, math.MaxInt64, 0, false},
		{5, 0, 5, true}, {-1, math.MinInt64, 0, false}, {0, math.MinInt64, math.MinInt64, true},
	} {
		got, err := Sum(c.a, c.b)
		if (err == nil) != c.ok || (c.ok && got != c.want) {
			t.Errorf("Sum(%d, %d) = %d, %v", c.a, c.b, got, err)
		}
	}
}

func TestKindOf(t *testing.T) {
	for _, k := range Kinds() {
		if KindOf(errors.Join(errors.New("at byte 7"), k)) != k {
			t.Errorf("%v is not found inside a wrapped error", k)
		}
	}
	if KindOf(errors.New("plain")) != nil {
		t.Error("a plain error has a kind")
	}
}
