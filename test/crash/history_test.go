package crash

import "testing"

// TestHistory: the checker tells right from wrong.
func TestHistory(t *testing.T) {
	type told struct {
		call, ret int64
		in        input
		out       output
	}
	const forever = 1 << 62
	begin := told{0, 1, input{begin: true}, output{value: 5}}
	for _, test := range []struct {
		name string
		ops  []told
		good bool
	}{
		{"add and read", []told{begin, {2, 3, input{delta: 1}, output{value: 6}}, {4, 5, input{}, output{value: 6}}}, true},
		{"lost add", []told{begin, {2, 3, input{delta: 1}, output{value: 6}}, {4, 5, input{}, output{value: 5}}}, false},
		{"add twice", []told{begin, {2, 3, input{delta: 1}, output{value: 6}}, {4, 5, input{}, output{value: 7}}}, false},
		{"unknown, applied", []told{begin, {2, forever, input{delta: 1}, output{unknown: true}}, {4, 5, input{}, output{value: 6}}}, true},
		{"unknown, not applied", []told{begin, {2, forever, input{delta: 1}, output{unknown: true}}, {4, 5, input{}, output{value: 5}}}, true},
		{"unknown, taken back", []told{
			begin, {2, forever, input{delta: 1}, output{unknown: true}},
			{4, 5, input{}, output{value: 6}}, {6, 7, input{}, output{value: 5}},
		}, false},
		{"duplicate", []told{begin, {2, 3, input{delta: 1}, output{value: 5, duplicate: true}}, {4, 5, input{}, output{value: 5}}}, true},
	} {
		var h history
		for _, op := range test.ops {
			h.note(0, op.call, op.in, op.out)
			h.ops[len(h.ops)-1].Return = op.ret
		}
		if err := h.check(test.name); (err == nil) != test.good {
			t.Errorf("%s: check = %v, want good = %v", test.name, err, test.good)
		}
	}
}
