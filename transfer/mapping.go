package transfer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tally-counter/tally/counter"
)

// Kind says what the rows of a file are.
type Kind uint8

const (
	Events Kind = iota // something happened: each row is added
	Values             // how it stands: each row is set
)

func (k Kind) String() string { return [...]string{"events", "values"}[k] }

// Mapping says what the columns of a file mean. Zero fields mean the defaults
// that Check fills in.
type Mapping struct {
	Kind          Kind
	Namespace     string   // default: counter.DefaultNamespace
	ID            string   // column, or template with {column}s; of values the default is "id"
	EmptyID       bool     // an empty id names the object with the empty id; else the row is bad
	Counter       string   // name of the counter
	CounterColumn string   // or the column that names it; of values the default is "counter"
	Amounts       []string // columns of deltas or values; of events also one whole number, by default 1; of values the default is "value"
	Token         string   // column that holds each row's token; "": none
}

// Check fills in defaults and reports, as ErrInvalid, what does not go together.
//
// With neither Counter nor CounterColumn every column of Amounts is a counter of
// that name.
func (m *Mapping) Check() error {
	if m.Namespace == "" {
		m.Namespace = counter.DefaultNamespace
	}
	if err := counter.CheckNamespace(m.Namespace); err != nil {
		return err
	}
	if m.Kind == Values {
		if m.ID == "" {
			m.ID = "id"
		}
		if len(m.Amounts) == 0 {
			m.Amounts = []string{"value"}
			if m.Counter == "" && m.CounterColumn == "" {
				m.CounterColumn = "counter"
			}
		}
	} else if len(m.Amounts) == 0 {
		m.Amounts = []string{"1"}
	}
	named := m.Counter != "" || m.CounterColumn != ""
	switch {
	case m.ID == "":
		return fmt.Errorf("say which column holds the object's id: --id COLUMN: %w", counter.ErrInvalid)
	case m.Counter != "" && m.CounterColumn != "":
		return fmt.Errorf("--counter and --counter-column both name the counter; give one: %w", counter.ErrInvalid)
	case !named && m.constant():
		return fmt.Errorf("say which counter the rows are for: --counter NAME or --counter-column COLUMN: %w", counter.ErrInvalid)
	case named && len(m.Amounts) > 1:
		return fmt.Errorf("several columns of numbers are counters of their own names; leave out --counter and --counter-column, or give one column: %w", counter.ErrInvalid)
	case len(m.Amounts) > counter.DeltasMax:
		return fmt.Errorf("%d columns of numbers, the limit is %d: %w", len(m.Amounts), counter.DeltasMax, counter.ErrInvalid)
	case m.Kind == Values && m.Token != "":
		return fmt.Errorf("values are set, not added, and need no tokens: %w", counter.ErrInvalid)
	}
	if m.Counter != "" {
		return counter.CheckName(m.Counter)
	}
	if !named {
		for _, name := range m.Amounts {
			if err := counter.CheckName(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// constant tells whether every row adds the same number.
func (m *Mapping) constant() bool {
	_, err := strconv.ParseInt(m.Amounts[0], 10, 64)
	return m.Kind == Events && len(m.Amounts) == 1 && err == nil
}

// rule is a Mapping made ready for rows.
type rule struct {
	Mapping
	columns       columnSet // what to read of each row
	id            template
	counterColumn int   // position in Row.Fields
	amounts       []int // positions in Row.Fields; nil: by
	by            int64
	token         int // position in Row.Fields, -1: none
}

// newRule makes m ready. Errors: ErrInvalid.
func newRule(m Mapping) (*rule, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	r := &rule{Mapping: m, counterColumn: -1, token: -1}
	if strings.Contains(m.ID, "{") {
		var err error
		if r.id, err = parseTemplate(m.ID, &r.columns); err != nil {
			return nil, err
		}
	} else {
		r.id = template{texts: []string{"", ""}, columns: []int{r.columns.add(m.ID)}}
	}
	if m.CounterColumn != "" {
		r.counterColumn = r.columns.add(m.CounterColumn)
	}
	if m.constant() {
		r.by, _ = strconv.ParseInt(m.Amounts[0], 10, 64) // constant has parsed it
	} else {
		for _, name := range m.Amounts {
			r.amounts = append(r.amounts, r.columns.add(name))
		}
	}
	if m.Token != "" {
		r.token = r.columns.add(m.Token)
	}
	return r, nil
}

// item turns a row into an item, or says why it cannot.
func (r *rule) item(row *Row) (it Item, reason string) {
	it = Item{Line: row.Line, Raw: row.Raw}
	id, ok := r.id.fill(row)
	if !ok || id == "" && !r.EmptyID {
		return it, "the id is missing"
	}
	it.Key = counter.Key{Namespace: r.Namespace, ID: counter.ParseID(id)}
	if len(id) > counter.IDBytesMax {
		return it, fmt.Sprintf("the id has %d bytes, the limit is %d", len(id), counter.IDBytesMax)
	}
	name := r.Counter
	if r.counterColumn >= 0 {
		name = row.Fields[r.counterColumn]
		switch {
		case name == "":
			return it, "the counter's name is missing"
		case len(name) > counter.NameBytesMax:
			return it, fmt.Sprintf("the counter's name has %d bytes, the limit is %d", len(name), counter.NameBytesMax)
		}
	}
	if r.amounts == nil {
		it.Deltas = []counter.Delta{{Counter: name, By: r.by}}
	} else if reason = r.amountsOf(row, name, &it); reason != "" {
		return it, reason
	}
	if r.token >= 0 {
		it.Token = row.Fields[r.token]
		switch {
		case it.Token == "":
			return it, "the token is missing"
		case len(it.Token) > counter.TokenBytesMax:
			return it, fmt.Sprintf("the token has %d bytes, the limit is %d", len(it.Token), counter.TokenBytesMax)
		}
	}
	return it, ""
}

// amountsOf reads the numbers of a row. Where several columns are counters, an
// empty one says nothing about its counter.
func (r *rule) amountsOf(row *Row, name string, it *Item) (reason string) {
	it.Deltas = make([]counter.Delta, 0, len(r.amounts))
	for i, col := range r.amounts {
		text := row.Fields[col]
		if text == "" && len(r.amounts) > 1 {
			continue
		}
		by, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Sprintf("%s %.40q is not a whole number within 64 bits", r.Amounts[i], text)
		}
		counterName := name
		if counterName == "" {
			counterName = r.Amounts[i]
		}
		it.Deltas = append(it.Deltas, counter.Delta{Counter: counterName, By: by})
	}
	if len(it.Deltas) == 0 {
		return "every number is missing"
	}
	return ""
}
