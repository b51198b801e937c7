package table

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

// textKinds make texts that share much, little or nothing, short and long.
var textKinds = map[string]func(r *rand.Rand) string{
	"padded": func(r *rand.Rand) string { return fmt.Sprintf("counter:%012d", r.Intn(30_000)) },
	"hex":    func(r *rand.Rand) string { return fmt.Sprintf("%016x", r.Uint64()) },
	"bytes": func(r *rand.Rand) string {
		return "ab" + strings.Repeat("\x00", r.Intn(12)) + strings.Repeat("b", r.Intn(3))
	},
	"chains": func(r *rand.Rand) string { return strings.Repeat("x", r.Intn(200)) + string(rune('a'+r.Intn(26))) },
	"long":   func(r *rand.Rand) string { return strings.Repeat(string(rune('a'+r.Intn(3))), 100+r.Intn(400)) },
	"paths": func(r *rand.Rand) string {
		return fmt.Sprintf("/shop/%d/item/%d/%s", r.Intn(20), r.Intn(300), strings.Repeat("v", r.Intn(40)))
	},
}

// Texts inserted in random order are found, in order, and gone once deleted;
// every page is as CheckPage wants it (with assertions on, after each insert).
func TestTexts(t *testing.T) {
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	for name, text := range textKinds {
		r := rand.New(rand.NewSource(seed))
		pool := NewPool()
		tab, want := New(pool, nil), model{}
		var c Cursor
		for i := range 6000 {
			k := Key{Text: text(r), IsText: true}
			if i%5 == 4 {
				if err := tab.Seek(&c, k); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Delete(); err != nil {
					t.Fatal(err)
				}
				delete(want, string(AppendName(nil, k)))
				continue
			}
			v, err := tab.Add(k, Column(i%2), int64(i))
			if err != nil {
				t.Fatal(err)
			}
			want.set(k, Column(i%2), v)
		}
		same(t, tab, want)
		keys, values, present := []Key{}, make([]int64, 100), make([]bool, 100)
		for range 100 {
			keys = append(keys, Key{Text: text(r), IsText: true})
		}
		if err := tab.GetBatch(keys, []Column{1}, values, present); err != nil {
			t.Fatal(err)
		}
		for i, k := range keys {
			if v, ok := want[string(AppendName(nil, k))][1]; v != values[i] || ok != present[i] {
				t.Fatalf("%s: GetBatch of %s = %d, %v; want %d, %v", name, k, values[i], present[i], v, ok)
			}
		}
		pool.Close()
	}
}

// Texts are sought in a page as in a sorted list.
func TestTextPlaces(t *testing.T) {
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	for name, text := range textKinds {
		r := rand.New(rand.NewSource(seed))
		for range 40 {
			var texts []string
			for range 1 + r.Intn(120) {
				texts = append(texts, text(r))
			}
			slices.Sort(texts)
			texts = slices.Compact(texts)
			var keys []Key
			var list []cellOf
			for i, s := range texts {
				keys = append(keys, Key{Text: s, IsText: true})
				list = append(list, cellOf{i, 0, 1})
			}
			b := packed(t, Key{IsText: true}, keys, list)
			b = append(b, make([]byte, padBytes)...)
			for range 60 {
				k := text(r)
				if r.Intn(3) == 0 {
					k = k[:r.Intn(len(k)+1)]
				}
				want, found := slices.BinarySearch(texts, k)
				if row, ok := b.find(Key{Text: k, IsText: true}, Key{}); row != want || ok != found {
					t.Fatalf("%s: find(%q) = %d, %v; want %d, %v", name, k, row, ok, want, found)
				}
			}
		}
	}
}

// What does not say where its runs are, or what keys share, is refused.
func TestCheckTexts(t *testing.T) {
	var keys []Key
	var list []cellOf
	for i := range 40 {
		keys = append(keys, Key{Text: fmt.Sprintf("key/%03d", 7*i), IsText: true})
		list = append(list, cellOf{i, 0, 1})
	}
	b := packed(t, Key{IsText: true}, keys, list)
	h := b.header()
	l := memOf(b).textBlock(h)
	if l.runs < 2 || l.shared != len("key/") {
		t.Fatalf("%d runs behind a prefix of %d bytes", l.runs, l.shared)
	}
	// Every bit of the block but those of the keys' own bytes matters.
	for i := h.keysAt(); i < int(memOf(b).place(&l, 0))+1; i++ {
		if i >= l.prefix && i < l.prefix+l.shared {
			continue
		}
		for bit := range 8 {
			c := bytes.Clone(b)
			c[i] ^= 1 << bit
			if _, err := CheckPage([]byte("s"), nil, c); err == nil {
				t.Errorf("byte %d of the keys, bit %d flipped: accepted", i-h.keysAt(), bit)
			}
		}
	}
}

func TestAddTextAllocatesNothing(t *testing.T) {
	pool := NewPool()
	defer pool.Close()
	tab := New(pool, nil)
	var keys []Key
	for i := range 20_000 {
		keys = append(keys, Key{Text: fmt.Sprintf("%012d", i*7), IsText: true})
		if _, err := tab.Add(keys[i], 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	if n := testing.AllocsPerRun(20_000, func() {
		tab.Add(keys[i%1000], 0, 1)
		i++
	}); n != 0 {
		t.Fatalf("Add: %v allocations a call, want 0", n)
	}
}
