// Package remote speaks to a Tally server for the command line: adds, reads,
// scans, schema and bulk transfer, over the Redis protocol.
//
// It is not the SDK: it keeps no counts, aggregates nothing and never sends a
// write a second time by itself, since an add that may have been applied must
// not be. That is also why it stands on rueidis: it retries reads only, and the
// option is off here, where go-redis repeats writes unless told otherwise; its
// DoMulti keeps one connection's order, which sessions need.
//
// A Client may be used by any goroutine.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/tally-counter/tally/counter"
)

// Options of a connection. Zero values mean the defaults.
type Options struct {
	Addr     string        // HOST:PORT
	Password string        // "": none is sent
	Timeout  time.Duration // for connecting, and for noticing a dead server; default 10 s
}

// Client is a connection to one server, made when it is first used, and made anew
// when it was lost.
type Client struct {
	o Options

	mu    sync.Mutex
	redis rueidis.Client // nil: not connected yet
}

// New returns a client. Every call of it may end with ErrUnavailable when nobody
// answers, with ErrInvalid when the server refuses the password, and with
// ErrUnknown when the answer was lost.
func New(o Options) *Client {
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	return &Client{o: o}
}

// connected returns the connection.
func (c *Client) connected() (rueidis.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.redis != nil {
		return c.redis, nil
	}
	redis, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{c.o.Addr},
		Password:          c.o.Password,
		ClientName:        "tally-cli",
		Dialer:            net.Dialer{Timeout: c.o.Timeout},
		ConnWriteTimeout:  c.o.Timeout,
		ForceSingleClient: true,
		DisableCache:      true,
		DisableRetry:      true,
		PipelineMultiplex: -1, // one connection
	})
	if err != nil {
		if _, replied := rueidis.IsRedisErr(err); replied {
			return nil, c.failed(err)
		}
		return nil, c.nobody(err)
	}
	c.redis = redis
	return redis, nil
}

// Close hangs up.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.redis != nil {
		c.redis.Close()
	}
	return nil
}

func (c *Client) do(ctx context.Context, args ...string) (rueidis.RedisMessage, error) {
	redis, err := c.connected()
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	m, err := redis.Do(ctx, redis.B().Arbitrary(args[0]).Args(args[1:]...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		return m, c.failed(err)
	}
	return m, nil
}

// nobody says that a connection was not made.
func (c *Client) nobody(err error) error {
	return fmt.Errorf("no server answers at %s (%w); start one with `tally serve`, or say where it is with --addr: %w",
		c.o.Addr, err, counter.ErrUnavailable)
}

// kinds gives the prefix of an error reply its kind. resp writes them; what is
// not here is ErrInvalid.
var kinds = map[string]error{
	"NOTFOUND":    counter.ErrNotFound,
	"EXISTS":      counter.ErrExists,
	"CONFLICT":    counter.ErrConflict,
	"TOOOLD":      counter.ErrTooOld,
	"FENCED":      counter.ErrFenced,
	"GAP":         counter.ErrGap,
	"BUSY":        counter.ErrBusy,
	"UNAVAILABLE": counter.ErrUnavailable,
	"CORRUPT":     counter.ErrCorrupt,
	"UNKNOWN":     counter.ErrUnknown,
	"READONLY":    counter.ErrReadOnly,
}

// failed turns a reply or a failed connection into an error with a kind.
func (c *Client) failed(err error) error {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		return replyError(reply.Error())
	}
	var dial *net.OpError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, syscall.ECONNREFUSED):
		return c.nobody(err)
	}
	return fmt.Errorf("the connection to %s was lost before the answer came (%w); what was sent may or may not have been applied: %w",
		c.o.Addr, err, counter.ErrUnknown)
}

// replyError reads the text of an error reply.
func replyError(text string) error {
	prefix, rest, _ := strings.Cut(text, " ")
	switch {
	case prefix == "NOAUTH" || prefix == "WRONGPASS":
		return fmt.Errorf("the server wants a password; give it in TALLY_PASSWORD or with --password (%s): %w", text, counter.ErrInvalid)
	case strings.HasPrefix(rest, "bounds:"):
		return fmt.Errorf("%s: %w", strings.TrimSpace(strings.TrimPrefix(rest, "bounds:")), counter.ErrBounds)
	case strings.HasSuffix(text, counter.ErrOverflow.Error()):
		return counter.ErrOverflow
	}
	if kind := kinds[prefix]; kind != nil {
		return fmt.Errorf("%s: %w", rest, kind)
	}
	return fmt.Errorf("the server says %q: %w", text, counter.ErrInvalid)
}

// unexpected reports a reply of another shape than the protocol has: another
// program, or another version of Tally, answers there.
func (c *Client) unexpected(command string, m rueidis.RedisMessage) error {
	return fmt.Errorf("%s: %s answers %.100q, which this version of tally does not understand; is it a Tally server of the same version?: %w",
		c.o.Addr, command, m.String(), counter.ErrInvalid)
}
