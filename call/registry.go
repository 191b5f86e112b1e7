package call

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// A Registry holds capabilities by their id, and what is known of how they do:
// which are down, how many of their invocations are under way. Its capabilities
// are those that it was made with; it may be used by any number of Applicators,
// runs and goroutines at once, for all of which it keeps the same limits.
type Registry struct {
	entries map[string]*entry
	order   []*entry // the cheapest first
	err     error
}

// An entry is one capability with its limits.
type entry struct {
	Capability
	step    string // its id in the names of steps, where a slash would have to be escaped
	breaker breaker
	slots   chan struct{} // as many as may be under way at once; nil is any number
	rate    *window       // nil is any rate
	held    atomic.Bool   // down because somebody said so
	flights atomic.Int64
}

// NewRegistry returns a registry of the capabilities. What is wrong with them is
// told by Err, and by stone.Validate for every pipeline that calls into it.
func NewRegistry(caps ...Capability) *Registry {
	r := &Registry{entries: make(map[string]*entry, len(caps))}
	var faults []error
	for i, c := range caps {
		if err := c.Check(); err != nil {
			faults = append(faults, err)
		}
		switch {
		case c.Invoke == nil:
			faults = append(faults, fmt.Errorf("capability %q (number %d): Invoke is nil: give it a function", c.ID, i+1))
		case r.entries[c.ID] != nil:
			faults = append(faults, fmt.Errorf("capability %q (number %d): there is another one with this cap/id: rename one", c.ID, i+1))
		default:
			e := &entry{Capability: c, step: strings.ReplaceAll(c.ID, "/", "|")}
			if n := c.Limits.Concurrency; n > 0 {
				e.slots = make(chan struct{}, n)
			}
			if n := c.Limits.PerMinute; n > 0 {
				e.rate = newWindow(n)
			}
			r.entries[c.ID], r.order = e, append(r.order, e)
		}
	}
	slices.SortStableFunc(r.order, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.Cost.typical(), b.Cost.typical()), cmp.Compare(a.Cost.Latency, b.Cost.Latency))
	})
	r.err = errors.Join(faults...)
	return r
}

// typical is what an invocation with a thousand tokens in and out costs: prices
// by the token and by the piece have to be compared somehow.
func (c Cost) typical() float64 { return c.USD + (c.In+c.Out)/1000 }

// Err returns what is wrong with the capabilities, everything at once, or nil.
func (r *Registry) Err() error {
	if r == nil {
		return nil
	}
	return r.err
}

// IDs returns the ids of all capabilities, sorted.
func (r *Registry) IDs() []string {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.entries))
}

// intents ranges over what the capabilities say that they answer.
func (r *Registry) intents() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, id := range r.IDs() {
			for _, intent := range r.entries[id].Intents {
				if !yield(intent) {
					return
				}
			}
		}
	}
}

// Lookup returns what is known of a capability.
func (r *Registry) Lookup(id string) (Metadata, bool) {
	e := r.entry(id)
	if e == nil {
		return Metadata{}, false
	}
	return e.Metadata, true
}

func (r *Registry) entry(id string) *entry {
	if r == nil {
		return nil
	}
	return r.entries[id]
}

// SetDown holds a capability down, whatever its circuit breaker says, until it is
// set up again. It reports whether there is such a capability.
func (r *Registry) SetDown(id string, down bool) bool {
	e := r.entry(id)
	if e != nil {
		e.held.Store(down)
	}
	return e != nil
}

// A State says how a capability does at the moment.
type State struct {
	Down     bool `json:"down"`      // it is not asked: its breaker is open, or SetDown said so
	Failures int  `json:"failures"`  // of its last invocations, in a row
	InFlight int  `json:"in-flight"` // invocations under way
}

// State returns how a capability does; the zero State if there is none.
func (r *Registry) State(id string) State {
	e := r.entry(id)
	if e == nil {
		return State{}
	}
	return State{Down: e.down(), Failures: e.breaker.row(), InFlight: int(e.flights.Load())}
}

// down reports whether the capability must not be asked now.
func (e *entry) down() bool { return e.held.Load() || e.breaker.down() }
