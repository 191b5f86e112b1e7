package call

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/stonelayer/stone/internal/limit"
)

// A Registry contains capabilities by id, and their state: which of them are down, and how many invocations are running. The
// capabilities are fixed when the Registry is made. Any number of Applicators, runs and goroutines may use it at once; they share
// its limits.
type Registry struct {
	entries map[string]*entry
	order   []*entry // the capabilities, cheapest first
	err     error
}

// An entry is one capability together with the state of its limits.
type entry struct {
	Capability
	breaker breaker
	limiter *limit.Limiter
	held    atomic.Bool // set by SetDown
	flights atomic.Int64
}

// NewRegistry returns a registry of the capabilities. It omits a capability that lacks Invoke or has the same id as an earlier
// one. Err returns all faults, and stone.Validate reports them for every pipeline that calls into the registry.
func NewRegistry(caps ...Capability) *Registry {
	r := &Registry{entries: make(map[string]*entry, len(caps))}
	var faults []error
	for i, c := range caps {
		if err := c.Check(); err != nil {
			faults = append(faults, err)
		}
		switch {
		case c.Invoke == nil:
			faults = append(faults, fmt.Errorf("capability %q (number %d): Invoke is nil: set it to a function", c.ID, i+1))
		case r.entries[c.ID] != nil:
			faults = append(faults, fmt.Errorf("capability %q (number %d): another capability has this cap/id: rename one", c.ID, i+1))
		default:
			e := &entry{Capability: c}
			e.limiter = limit.New(limit.Limits{RequestsPerMinute: c.Limits.PerMinute, Concurrency: c.Limits.Concurrency})
			r.entries[c.ID], r.order = e, append(r.order, e)
		}
	}
	slices.SortStableFunc(r.order, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.Cost.typical(), b.Cost.typical()), cmp.Compare(a.Cost.Latency, b.Cost.Latency))
	})
	r.err = errors.Join(faults...)
	return r
}

// typical is the cost of an invocation with a thousand input and a thousand output
// tokens. It makes prices by token and by invocation comparable.
func (c Cost) typical() float64 { return c.USD + (c.In+c.Out)/1000 }

// Err returns an error that lists all faults of the capabilities, one per line, or nil if there are none.
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

// ordered returns the ids of all capabilities, cheapest first.
func (r *Registry) ordered() (ids []string) {
	if r != nil {
		for _, e := range r.order {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// Intents returns an iterator over the intents of all capabilities. An intent of several capabilities is repeated.
func (r *Registry) Intents() iter.Seq[string] {
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

// Lookup returns the metadata of the capability with the given id, and whether the id is registered.
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

// SetDown makes a capability unavailable, regardless of its circuit breaker, or available
// again. It reports whether the id is registered.
func (r *Registry) SetDown(id string, down bool) bool {
	e := r.entry(id)
	if e != nil {
		e.held.Store(down)
	}
	return e != nil
}

// A State is the current state of a capability.
type State struct {
	Down     bool `json:"down"`      // not invoked: its breaker is open, it requested a pause, or SetDown was called
	Failures int  `json:"failures"`  // the number of failures since the last success
	InFlight int  `json:"in-flight"` // the number of running invocations
}

// State returns the current state of the capability with the given id, or the zero State if the id is not registered.
func (r *Registry) State(id string) State {
	e := r.entry(id)
	if e == nil {
		return State{}
	}
	return State{Down: e.down(), Failures: e.breaker.row(), InFlight: int(e.flights.Load())}
}

// down reports whether the capability must not be invoked now.
func (e *entry) down() bool { return e.held.Load() || e.breaker.down() }
