package remote

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/transfer"
)

// OpenSession is for transfer.Target.
func (c *Client) OpenSession(ctx context.Context, producer string) (epoch, lastSeq uint64, err error) {
	m, err := c.do(ctx, "TALLY.SESSION", "OPEN", producer)
	if err != nil {
		return 0, 0, err
	}
	reply, err := m.AsIntSlice()
	if err != nil || len(reply) != 2 {
		return 0, 0, c.unexpected("TALLY.SESSION", m)
	}
	return uint64(reply[0]), uint64(reply[1]), nil
}

// Send is for transfer.Target: all batches go out in one pipeline.
func (c *Client) Send(ctx context.Context, batches []*transfer.Batch) (done int, err error) {
	redis, err := c.connected()
	if err != nil {
		return 0, err
	}
	var commands rueidis.Commands
	for _, b := range batches {
		if b.Kind == transfer.Values {
			for i := range b.Items {
				commands = append(commands, set(redis, &b.Items[i]))
			}
		} else {
			commands = append(commands, add(redis, b))
		}
	}
	replies := redis.DoMulti(ctx, commands...)
	for _, b := range batches {
		if b.Kind == transfer.Values {
			if err := c.settleValues(b, replies[:len(b.Items)]); err != nil {
				return done, err
			}
			replies = replies[len(b.Items):]
		} else {
			if err := c.settleAdds(b, replies[0]); err != nil {
				return done, err
			}
			replies = replies[1:]
		}
		done++
	}
	return done, nil
}

func set(redis rueidis.Client, it *transfer.Item) rueidis.Completed {
	args := make([]string, 0, 1+2*len(it.Deltas))
	args = append(args, it.Key.String())
	for _, v := range it.Deltas {
		args = append(args, v.Counter, strconv.FormatInt(v.By, 10))
	}
	return redis.B().Arbitrary("HSET").Args(args...).Build()
}

func (c *Client) settleValues(b *transfer.Batch, replies []rueidis.RedisResult) error {
	b.Applied, b.Refused = 0, nil
	for i, r := range replies {
		err := r.Error()
		if err == nil {
			b.Applied++
			continue
		}
		if _, replied := rueidis.IsRedisErr(err); !replied {
			return c.failed(err)
		}
		b.Refused = append(b.Refused, transfer.Refusal{Item: i, Err: c.failed(err)})
	}
	return nil
}

// add writes a batch as one TALLY.MADD, in the shortest form its items allow.
func add(redis rueidis.Client, b *transfer.Batch) rueidis.Completed {
	args := make([]string, 0, 8+3*len(b.Items))
	if b.Producer != "" {
		args = append(args, "SESSION", b.Producer, strconv.FormatUint(b.Epoch, 10), strconv.FormatUint(b.Seq, 10))
	}
	args = append(args, "COUNTS")
	tokens, shape := b.Items[0].Token != "", shapeOf(b.Items)
	switch shape {
	case oneCounter:
		args = append(args, "COUNTER", b.Items[0].Deltas[0].Counter)
	case manyDeltas:
		args = append(args, "DELTAS")
	}
	if tokens {
		args = append(args, "TOKENS")
	}
	args = append(args, strconv.Itoa(len(b.Items)))
	for i := range b.Items {
		it := &b.Items[i]
		args = append(args, it.Key.String())
		if shape == manyDeltas {
			args = append(args, strconv.Itoa(len(it.Deltas)))
		}
		for _, d := range it.Deltas {
			if shape != oneCounter {
				args = append(args, d.Counter)
			}
			args = append(args, strconv.FormatInt(d.By, 10))
		}
		if tokens {
			args = append(args, it.Token)
		}
	}
	return redis.B().Arbitrary("TALLY.MADD").Args(args...).Build()
}

// shape is what the items of a batch have in common.
type shape uint8

const (
	oneCounter shape = iota // one delta each, all to the same counter
	oneDelta                // one delta each
	manyDeltas
)

func shapeOf(items []transfer.Item) shape {
	s := oneCounter
	for i := range items {
		switch d := items[i].Deltas; {
		case len(d) != 1:
			return manyDeltas
		case d[0].Counter != items[0].Deltas[0].Counter:
			s = oneDelta
		}
	}
	return s
}

// settleAdds reads [applied, duplicate, rejected, failed, exceptions].
func (c *Client) settleAdds(b *transfer.Batch, r rueidis.RedisResult) error {
	m, err := r.ToMessage()
	if err != nil {
		return c.failed(err)
	}
	reply, err := m.ToArray()
	if err != nil || len(reply) != 5 {
		return c.unexpected("TALLY.MADD", m)
	}
	applied, err1 := reply[0].AsInt64()
	duplicate, err2 := reply[1].AsInt64()
	exceptions, err3 := reply[4].ToArray()
	if err1 != nil || err2 != nil || err3 != nil || int(applied+duplicate)+len(exceptions) != len(b.Items) {
		return c.unexpected("TALLY.MADD", m)
	}
	b.Applied, b.Duplicate, b.Refused = int(applied), int(duplicate), nil
	for i := range exceptions {
		refusal, err := parseRefusal(b, &exceptions[i])
		if err != nil {
			return c.unexpected("TALLY.MADD", m)
		}
		b.Refused = append(b.Refused, refusal)
	}
	return nil
}

// parseRefusal reads [index, rejected, value …] or [index, failed, error].
func parseRefusal(b *transfer.Batch, m *rueidis.RedisMessage) (transfer.Refusal, error) {
	parts, err := m.ToArray()
	if err != nil || len(parts) < 3 {
		return transfer.Refusal{}, fmt.Errorf("%d parts: %w", len(parts), err)
	}
	index, err := parts[0].AsInt64()
	if err != nil || index < 0 || int(index) >= len(b.Items) {
		return transfer.Refusal{}, fmt.Errorf("index %d: %w", index, err)
	}
	outcome, err := parseOutcome(&parts[1])
	if err != nil {
		return transfer.Refusal{}, err
	}
	if outcome == counter.Failed {
		text, err := parts[2].ToString()
		return transfer.Refusal{Item: int(index), Err: replyError(text)}, err
	}
	values := make([]int64, len(parts)-2)
	for i := range values {
		if values[i], err = parts[i+2].AsInt64(); err != nil {
			return transfer.Refusal{}, err
		}
	}
	return transfer.Refusal{Item: int(index), Err: Rejection(b.Items[index].Deltas, values)}, nil
}

// Rejection says that a bound forbade an add, and how its counters stand.
func Rejection(deltas []counter.Delta, values []int64) error {
	stand := ""
	for i, d := range deltas {
		if i > 0 {
			stand += ", "
		}
		if i < len(values) {
			stand += fmt.Sprintf("%s stands at %d", d.Counter, values[i])
		}
	}
	return fmt.Errorf("rejected, nothing was changed: %s: %w", stand, counter.ErrBounds)
}

// Scan is for transfer.Source. Errors: ErrNotFound when there is no such namespace.
func (c *Client) Scan(ctx context.Context, namespace string, from counter.ID, limit int) (transfer.Page, error) {
	var p transfer.Page
	m, err := c.do(ctx, "TALLY.SCAN", namespace, "FROM", from.String(), "COUNT", strconv.Itoa(limit))
	if err != nil {
		return p, err
	}
	reply, err := m.ToArray()
	if err != nil || len(reply) != 2 {
		return p, c.unexpected("TALLY.SCAN", m)
	}
	if !reply[0].IsNil() {
		next, err := reply[0].ToString()
		if err != nil {
			return p, c.unexpected("TALLY.SCAN", m)
		}
		p.Next, p.More = counter.ParseID(next), true
	}
	objects, err := reply[1].ToArray()
	if err != nil {
		return p, c.unexpected("TALLY.SCAN", m)
	}
	for i := range objects {
		o, err := parseObject(&objects[i])
		if err != nil {
			return p, c.unexpected("TALLY.SCAN", m)
		}
		p.Objects = append(p.Objects, o)
	}
	if len(objects) == 0 { // nothing here, or nowhere?
		_, err = c.Counters(ctx, namespace)
	}
	return p, err
}

func parseObject(m *rueidis.RedisMessage) (transfer.Object, error) {
	parts, err := m.ToArray()
	if err != nil || len(parts) != 2 {
		return transfer.Object{}, fmt.Errorf("%d parts: %w", len(parts), err)
	}
	id, err := parts[0].ToString()
	if err != nil {
		return transfer.Object{}, err
	}
	flat, err := parts[1].ToArray()
	if err != nil {
		return transfer.Object{}, err
	}
	values, err := parseValues(flat)
	return transfer.Object{ID: counter.ParseID(id), Values: values}, err
}
