package remote

import (
	"context"
	"math"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/tally-counter/tally/counter"
)

// Namespace is a namespace in use.
type Namespace struct {
	Name     string `json:"namespace"`
	Objects  int64  `json:"objects"`
	Counters int64  `json:"counters"`
}

// Namespaces lists the namespaces.
func (c *Client) Namespaces(ctx context.Context) ([]Namespace, error) {
	m, err := c.do(ctx, "TALLY.SCHEMA", "LIST")
	if err != nil {
		return nil, err
	}
	reply, err := m.ToArray()
	if err != nil {
		return nil, c.unexpected("TALLY.SCHEMA LIST", m)
	}
	all := make([]Namespace, len(reply))
	for i := range reply {
		f := newFields(&reply[i])
		all[i] = Namespace{Name: f.text("namespace"), Objects: f.int("objects", 0), Counters: f.int("counters", 0)}
		if f.err != nil {
			return nil, c.unexpected("TALLY.SCHEMA LIST", m)
		}
	}
	return all, nil
}

// Counters lists the counters of a namespace. Errors: ErrNotFound.
func (c *Client) Counters(ctx context.Context, namespace string) ([]counter.Schema, error) {
	m, err := c.do(ctx, "TALLY.SCHEMA", "GET", namespace)
	if err != nil {
		return nil, err
	}
	reply, err := m.ToArray()
	if err != nil {
		return nil, c.unexpected("TALLY.SCHEMA GET", m)
	}
	all := make([]counter.Schema, len(reply))
	for i := range reply {
		f := newFields(&reply[i])
		all[i] = counter.Schema{Name: f.text("counter"), Min: f.int("min", math.MinInt64), Max: f.int("max", math.MaxInt64)}
		if f.text("policy") == counter.Clamp.String() {
			all[i].Policy = counter.Clamp
		}
		if f.err != nil {
			return nil, c.unexpected("TALLY.SCHEMA GET", m)
		}
	}
	return all, nil
}

// fields are a map's, in RESP3 or flat.
type fields struct {
	m   map[string]rueidis.RedisMessage
	err error
}

func newFields(m *rueidis.RedisMessage) *fields {
	f := new(fields)
	f.m, f.err = m.AsMap()
	return f
}

func (f *fields) text(name string) string {
	m := f.m[name]
	s, err := m.ToString()
	if err != nil && f.err == nil {
		f.err = err
	}
	return s
}

func (f *fields) int(name string, none int64) int64 {
	m := f.m[name]
	if m.IsNil() {
		return none
	}
	n, err := m.AsInt64()
	if err != nil && f.err == nil {
		f.err = err
	}
	return n
}

// DeclareNamespace makes a namespace known.
func (c *Client) DeclareNamespace(ctx context.Context, namespace string) error {
	_, err := c.do(ctx, "TALLY.SCHEMA", "NAMESPACE", namespace)
	return err
}

// DropNamespace deletes a namespace with all its objects. Errors: ErrNotFound.
func (c *Client) DropNamespace(ctx context.Context, namespace string) error {
	_, err := c.do(ctx, "TALLY.SCHEMA", "DROP", namespace)
	return err
}

// DeclareCounter makes a counter, or gives it other bounds.
func (c *Client) DeclareCounter(ctx context.Context, namespace string, s counter.Schema) error {
	args := []string{"TALLY.SCHEMA", "SET", namespace, s.Name, "POLICY", s.Policy.String()}
	if s.Min != math.MinInt64 {
		args = append(args, "MIN", strconv.FormatInt(s.Min, 10))
	}
	if s.Max != math.MaxInt64 {
		args = append(args, "MAX", strconv.FormatInt(s.Max, 10))
	}
	_, err := c.do(ctx, args...)
	return err
}
