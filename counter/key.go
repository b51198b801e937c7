package counter

import (
	"fmt"
	"strconv"
	"strings"
)

// ID names an object inside its namespace: an unsigned 64-bit integer or a
// string of up to IDBytesMax bytes. A decimal number without sign or leading
// zero is always the integer, so an ID has one form only and IDs compare with ==.
// Integers come before strings in id order.
type ID struct {
	text   string
	num    uint64
	isText bool
}

// IntID returns the id n.
func IntID(n uint64) ID { return ID{num: n} }

// ParseID returns the id written as s. The ID keeps s: it is valid as long as s is.
func ParseID(s string) ID {
	if n, ok := canonicalUint(s); ok {
		return ID{num: n}
	}
	return ID{text: s, isText: true}
}

// canonicalUint reads s when it is exactly how strconv would print a uint64.
func canonicalUint(s string) (uint64, bool) {
	if len(s) == 0 || len(s) > 20 || (s[0] == '0' && len(s) > 1) {
		return 0, false
	}
	var n uint64
	for i := 0; i < len(s); i++ {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		if i == 19 && (n > 1844674407370955161 || (n == 1844674407370955161 && d > 5)) {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	return n, true
}

// Int returns the integer id, or false when id is a string.
func (id ID) Int() (uint64, bool) { return id.num, !id.isText }

// Text returns the string id, or false when id is an integer.
func (id ID) Text() (string, bool) { return id.text, id.isText }

// Append appends id as a client writes it.
func (id ID) Append(dst []byte) []byte {
	if id.isText {
		return append(dst, id.text...)
	}
	return strconv.AppendUint(dst, id.num, 10)
}

func (id ID) String() string {
	if id.isText {
		return id.text
	}
	return strconv.FormatUint(id.num, 10)
}

// Compare orders ids: integers by size, then strings by their bytes.
func (id ID) Compare(o ID) int {
	switch {
	case id.isText && o.isText:
		return strings.Compare(id.text, o.text)
	case id.isText:
		return 1
	case o.isText:
		return -1
	case id.num < o.num:
		return -1
	case id.num > o.num:
		return 1
	}
	return 0
}

// Clone returns an id that shares no memory with id's text.
func (id ID) Clone() ID {
	id.text = strings.Clone(id.text)
	return id
}

// Key names an object: namespace and id.
//
// Its written form, the key of the Redis protocol, is "namespace:id", split at
// the last colon; without a colon the namespace is DefaultNamespace. An id that
// holds a colon itself is written in braces, "namespace:{a:b}", so every object
// has exactly one written form and every written form one object.
type Key struct {
	Namespace string
	ID        ID
}

// ParseKey reads the written form. The Key keeps s: it is valid as long as s is.
func ParseKey(s string) (Key, error) {
	ns, id := splitKey(s)
	k := Key{ns, ParseID(id)}
	return k, k.Check()
}

func splitKey(s string) (ns, id string) {
	if strings.HasSuffix(s, "}") {
		if s[0] == '{' {
			if inner := s[1 : len(s)-1]; strings.IndexByte(inner, ':') >= 0 {
				return DefaultNamespace, inner
			}
		} else if i := strings.Index(s, ":{"); i >= 0 {
			if inner := s[i+2 : len(s)-1]; strings.IndexByte(inner, ':') >= 0 {
				return s[:i], inner
			}
		}
	}
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return DefaultNamespace, s
	}
	return s[:i], s[i+1:]
}

// Check reports whether k is within the limits, as ErrInvalid.
func (k Key) Check() error {
	if err := CheckNamespace(k.Namespace); err != nil {
		return err
	}
	if len(k.ID.text) > IDBytesMax {
		return fmt.Errorf("the id has %d bytes, the limit is %d: %w", len(k.ID.text), IDBytesMax, ErrInvalid)
	}
	return nil
}

// CheckNamespace reports whether ns can name a namespace, as ErrInvalid.
func CheckNamespace(ns string) error {
	switch {
	case ns == "":
		return fmt.Errorf("the namespace before the colon is empty; write namespace:id, or the id alone: %w", ErrInvalid)
	case len(ns) > NamespaceBytesMax:
		return fmt.Errorf("the namespace has %d bytes, the limit is %d: %w", len(ns), NamespaceBytesMax, ErrInvalid)
	case ns[0] == '{' || strings.Contains(ns, ":{"):
		return fmt.Errorf("namespace %.40q: a brace may not begin it or follow a colon, braces enclose ids: %w", ns, ErrInvalid)
	}
	return nil
}

// Append appends the written form of k.
func (k Key) Append(dst []byte) []byte {
	if k.Namespace != DefaultNamespace {
		dst = append(dst, k.Namespace...)
		dst = append(dst, ':')
	}
	if k.ID.isText && strings.IndexByte(k.ID.text, ':') >= 0 {
		dst = append(dst, '{')
		dst = append(dst, k.ID.text...)
		return append(dst, '}')
	}
	return k.ID.Append(dst)
}

func (k Key) String() string { return string(k.Append(nil)) }
