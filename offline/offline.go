// Package offline works on a data directory that no server holds: bulk transfer
// and figures without a server in between.
//
// A Directory may be used by any goroutine; it holds the directory's lock until
// Close.
package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tally-counter/tally/counter"
	"github.com/tally-counter/tally/engine"
	"github.com/tally-counter/tally/transfer"
)

// Directory is an open data directory.
type Directory struct{ engine *engine.Engine }

// Open opens dir. With create a directory that is not there is made.
// Errors: ErrNotFound without create; those of engine.Open.
func Open(dir string, create bool, o engine.Options) (*Directory, error) {
	if !create {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no data directory %s: %w", dir, counter.ErrNotFound)
		}
	}
	e, err := engine.Open(dir, o)
	if err != nil {
		return nil, err
	}
	return &Directory{e}, nil
}

// Close checkpoints what changed and gives the directory back.
func (d *Directory) Close() error { return d.engine.Close() }

// Stats are the engine's figures, by the names of their JSON form; names inside
// others are joined by an underscore, as a server answers them.
func (d *Directory) Stats(context.Context) (map[string]any, error) {
	b, err := json.Marshal(d.engine.Stats())
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	err = json.Unmarshal(b, &tree)
	flat := map[string]any{}
	flatten(flat, "", tree)
	return flat, err
}

func flatten(flat map[string]any, prefix string, tree map[string]any) {
	for name, v := range tree {
		if inner, ok := v.(map[string]any); ok {
			flatten(flat, prefix+name+"_", inner)
		} else {
			flat[prefix+name] = v
		}
	}
}

// OpenSession is for transfer.Target.
func (d *Directory) OpenSession(_ context.Context, producer string) (epoch, lastSeq uint64, err error) {
	epoch, lastSeq, pos, err := d.engine.OpenSession(producer)
	if err != nil {
		return 0, 0, err
	}
	return epoch, lastSeq, d.engine.Wait(pos)
}

// Send is for transfer.Target: all batches are written, then one wait for the disk.
func (d *Directory) Send(ctx context.Context, batches []*transfer.Batch) (done int, err error) {
	var last engine.Pos
	for _, b := range batches {
		if err = ctx.Err(); err != nil {
			break
		}
		pos, sendErr := d.send(b)
		if err = sendErr; err != nil {
			break
		}
		last = max(last, pos)
		done++
	}
	if waitErr := d.engine.Wait(last); waitErr != nil {
		return 0, waitErr
	}
	return done, err
}

func (d *Directory) send(b *transfer.Batch) (engine.Pos, error) {
	if b.Kind == transfer.Values {
		return d.set(b)
	}
	adds := make([]engine.Add, len(b.Items))
	for i, it := range b.Items {
		adds[i] = engine.Add{Key: it.Key, Deltas: it.Deltas, Token: it.Token}
	}
	var pos engine.Pos
	var err error
	if b.Producer != "" {
		pos, err = d.engine.AddSession(engine.Session{Producer: b.Producer, Epoch: b.Epoch, Seq: b.Seq}, adds)
	} else {
		if err = d.engine.Admit(); err == nil {
			pos, err = d.engine.AddBatch(adds)
		}
	}
	if err != nil {
		return pos, err
	}
	b.Applied, b.Duplicate, b.Refused = 0, 0, nil
	for i := range adds {
		switch adds[i].Outcome {
		case counter.Applied:
			b.Applied++
		case counter.Duplicate:
			b.Duplicate++
		default:
			b.Refused = append(b.Refused, transfer.Refusal{Item: i, Err: adds[i].Err})
		}
	}
	return pos, nil
}

// set sets the counters of a batch of values, item by item.
func (d *Directory) set(b *transfer.Batch) (engine.Pos, error) {
	if err := d.engine.Admit(); err != nil {
		return 0, err
	}
	keys := make([]counter.Key, len(b.Items))
	for i := range b.Items {
		keys[i] = b.Items[i].Key
	}
	return d.engine.Update(keys, func(tx *engine.Tx) error {
		b.Applied, b.Refused = 0, nil
		for i := range b.Items {
			if err := setItem(tx, &b.Items[i]); err != nil {
				b.Refused = append(b.Refused, transfer.Refusal{Item: i, Err: err})
			} else {
				b.Applied++
			}
		}
		return nil
	})
}

func setItem(tx *engine.Tx, it *transfer.Item) error {
	for _, v := range it.Deltas {
		if err := tx.Set(it.Key, v.Counter, v.By); err != nil {
			return fmt.Errorf("counter %q: %w", v.Counter, err)
		}
	}
	return nil
}

// Scan is for transfer.Source. Errors: ErrNotFound when there is no such namespace.
func (d *Directory) Scan(_ context.Context, namespace string, from counter.ID, limit int) (transfer.Page, error) {
	var p transfer.Page
	known := false
	for _, ns := range d.engine.Namespaces() {
		known = known || ns.Name == namespace
	}
	if !known {
		return p, fmt.Errorf("there is no namespace %q: %w", namespace, counter.ErrNotFound)
	}
	next, more, pos, err := d.engine.Scan(namespace, from, limit, func(id counter.ID, values []counter.Value) bool {
		p.Objects = append(p.Objects, transfer.Object{ID: id, Values: values})
		return true
	})
	if err != nil {
		return p, err
	}
	p.Next, p.More = next, more
	return p, d.engine.Wait(pos)
}
