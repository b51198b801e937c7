package resp

import "strings"

// glob tells whether s matches a pattern of Redis' kind: * any bytes, ? one
// byte, [a-z] or [^a-z] one of a class, \x the byte x itself. Its cost is at most
// len(pattern) × len(s): only the last star is ever tried again.
func glob(pattern, s string) bool {
	p, i := 0, 0
	star, resume := -1, 0
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			star, resume = p, i
			p++
			continue
		}
		if next, ok := matchOne(pattern, p, s[i]); ok {
			p, i = next, i+1
			continue
		}
		if star < 0 {
			return false
		}
		resume++
		p, i = star+1, resume
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches one byte and returns where the pattern goes on.
func matchOne(pattern string, p int, c byte) (next int, ok bool) {
	if p == len(pattern) {
		return p, false
	}
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '[':
		return matchClass(pattern, p+1, c)
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	return p + 1, pattern[p] == c
}

// matchClass matches the class that begins behind a bracket. One that is not
// closed ends with the pattern.
func matchClass(pattern string, p int, c byte) (next int, ok bool) {
	not := p < len(pattern) && pattern[p] == '^'
	if not {
		p++
	}
	for ; p < len(pattern) && pattern[p] != ']'; p++ {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			ok = ok || pattern[p] == c
		case p+2 < len(pattern) && pattern[p+1] == '-':
			low, high := min(pattern[p], pattern[p+2]), max(pattern[p], pattern[p+2])
			ok = ok || (low <= c && c <= high)
			p += 2
		default:
			ok = ok || pattern[p] == c
		}
	}
	if p < len(pattern) {
		p++
	}
	return p, ok != not
}

// literalPrefix is what every match of a pattern begins with.
func literalPrefix(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		return pattern[:i]
	}
	return pattern
}
