package remote

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/tally-counter/tally/counter"
)

// Add adds deltas to counters of one object, all or none. token "" is none.
// values are what each delta's counter holds afterwards, or as it stands when
// the outcome is Duplicate or Rejected.
//
// Errors: those of the engine; ErrUnknown when the answer was lost.
func (c *Client) Add(ctx context.Context, key string, deltas []counter.Delta, token string) (counter.Outcome, []int64, error) {
	args := []string{"TALLY.ADD", key}
	for _, d := range deltas {
		args = append(args, d.Counter, strconv.FormatInt(d.By, 10))
	}
	if token != "" {
		args = append(args, "TOKEN", token)
	}
	m, err := c.do(ctx, args...)
	if err != nil {
		return counter.Failed, nil, err
	}
	reply, err := m.ToArray()
	if err != nil || len(reply) != 1+len(deltas) {
		return counter.Failed, nil, c.unexpected(args[0], m)
	}
	outcome, err := parseOutcome(&reply[0])
	if err != nil {
		return counter.Failed, nil, c.unexpected(args[0], m)
	}
	values := make([]int64, len(deltas))
	for i := range values {
		if values[i], err = reply[i+1].AsInt64(); err != nil {
			return counter.Failed, nil, c.unexpected(args[0], m)
		}
	}
	return outcome, values, nil
}

func parseOutcome(m *rueidis.RedisMessage) (counter.Outcome, error) {
	s, err := m.ToString()
	if err != nil {
		return counter.Failed, err
	}
	for o := counter.Applied; o <= counter.Failed; o++ {
		if o.String() == s {
			return o, nil
		}
	}
	return counter.Failed, fmt.Errorf("outcome %.40q", s)
}

// Get reads all counters of an object, by name; no such object has none.
func (c *Client) Get(ctx context.Context, key string) ([]counter.Value, error) {
	m, err := c.do(ctx, "HGETALL", key)
	if err != nil {
		return nil, err
	}
	fields, err := m.AsIntMap()
	if err != nil {
		return nil, c.unexpected("HGETALL", m)
	}
	values := make([]counter.Value, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		values = append(values, counter.Value{Counter: name, Value: fields[name]})
	}
	return values, nil
}

// GetNamed reads the named counters of an object; ok tells which it has.
func (c *Client) GetNamed(ctx context.Context, key string, names []string) (values []int64, ok []bool, err error) {
	m, err := c.do(ctx, append([]string{"HMGET", key}, names...)...)
	if err != nil {
		return nil, nil, err
	}
	reply, err := m.ToArray()
	if err != nil || len(reply) != len(names) {
		return nil, nil, c.unexpected("HMGET", m)
	}
	values, ok = make([]int64, len(names)), make([]bool, len(names))
	for i := range reply {
		if reply[i].IsNil() {
			continue
		}
		if values[i], err = reply[i].AsInt64(); err != nil {
			return nil, nil, c.unexpected("HMGET", m)
		}
		ok[i] = true
	}
	return values, ok, nil
}

// parseValues reads counter, value, counter, value ….
func parseValues(flat []rueidis.RedisMessage) ([]counter.Value, error) {
	if len(flat)%2 != 0 {
		return nil, fmt.Errorf("%d replies are no pairs", len(flat))
	}
	values := make([]counter.Value, len(flat)/2)
	for i := range values {
		name, err := flat[2*i].ToString()
		if err != nil {
			return nil, err
		}
		v, err := flat[2*i+1].AsInt64()
		if err != nil {
			return nil, err
		}
		values[i] = counter.Value{Counter: name, Value: v}
	}
	return values, nil
}

// Stats are the server's figures by name.
func (c *Client) Stats(ctx context.Context) (map[string]any, error) {
	m, err := c.do(ctx, "TALLY.STATS")
	if err != nil {
		return nil, err
	}
	fields, err := m.AsMap()
	if err != nil {
		return nil, c.unexpected("TALLY.STATS", m)
	}
	stats := make(map[string]any, len(fields))
	for name, v := range fields {
		if stats[name], err = v.ToAny(); err != nil {
			return nil, c.unexpected("TALLY.STATS", m)
		}
	}
	return stats, nil
}

// Checkpoint has the server write a checkpoint, and returns when it is written.
func (c *Client) Checkpoint(ctx context.Context) error {
	_, err := c.do(ctx, "TALLY.CHECKPOINT")
	return err
}
