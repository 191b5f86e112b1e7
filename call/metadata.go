package call

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
)

// readMetadata reads the metadata of a capability from the fields of a map. The map may have other fields, which configure how
// the capability is reached. The map need not contain the ID if the metadata already has one, for example because the ID is the
// key of the map.
func readMetadata(m *form.Map, to *Metadata) {
	id := to.ID
	if id == "" {
		m.Need("cap/id")
	}
	if m.At("cap/id").Name(&to.ID) && id != "" && to.ID != id {
		m.FaultAt("cap/id", form.Invalid, "expected %q, under which it is registered, found %q", id, to.ID)
	}
	m.At("cap/kind").Name(&to.Kind)
	m.At("cap/version").Text(&to.Version)
	m.At("cap/intents").NameSet(&to.Intents)
	m.At("io/in-schema").Name(&to.In)
	m.At("io/out-schema").Name(&to.Out)
	if v := m.At("cap/can-produce"); v.NameSet(&to.CanProduce) {
		for _, name := range to.CanProduce {
			if !slices.Contains(replyTypes, name) {
				v.Unknown("type of reply", name, replyTypes...)
			}
		}
	}
	for key, effects := range map[string]*[]string{"cap/effects-allowed": &to.Effects, "cap/needs": &to.Needs} {
		readEffects(m, key, effects)
		checkEffects(m, key)
	}
	m.At("cap/tags").NameSet(&to.Tags)
	m.At("cap/cost").Map(to.Cost.read)
	m.At("cap/limits").Map(to.Limits.read)
}

var replyTypes = []string{Value, Plan, Stream}

func (c *Cost) read(m *form.Map) {
	m.At("latency-ms").Duration(&c.Latency)
	m.At("usd").Float(&c.USD, 0, math.Inf(1))
	readPrice(m, &c.Price)
}

// readPrice reads the price of tokens from the fields of a map.
func readPrice(m *form.Map, to *budget.Price) {
	m.At("usd-per-mtok-in").Float(&to.In, 0, math.Inf(1))
	m.At("usd-per-mtok-out").Float(&to.Out, 0, math.Inf(1))
	m.At("usd-per-mtok-cache-read").Float(&to.CacheRead, 0, math.Inf(1))
	m.At("usd-per-mtok-cache-write").Float(&to.CacheWrite, 0, math.Inf(1))
	m.At("usd-per-mtok-cache-write-1h").Float(&to.CacheHour, 0, math.Inf(1))
	m.At("usd-per-1000-searches").Float(&to.Search, 0, math.Inf(1))
}

func (l *Limits) read(m *form.Map) {
	// In Go, zero means unlimited. In data, 0 would be a limit that allows nothing.
	if m.At("timeout-ms").Duration(&l.Timeout) && l.Timeout == 0 {
		m.FaultAt("timeout-ms", form.OutOfRange, "expected at least 1, found 0")
	}
	m.At("concurrency").Int(&l.Concurrency, 1, counted)
	m.At("per-minute").Int(&l.PerMinute, 1, counted)
}

// Check returns all faults of the metadata, one per line, or nil.
func (m Metadata) Check() error {
	var faults []error
	fault := func(field, format string, args ...any) {
		faults = append(faults, fmt.Errorf("capability %q: %s: %s", m.ID, field, fmt.Sprintf(format, args...)))
	}
	name := func(field, name string) {
		if _, err := edn.Keyword(name); err != nil {
			fault(field, "expected a name such as text/respond, found %q", name)
		}
	}
	names := func(field string, all []string) {
		for i, n := range all {
			name(field, n)
			if slices.Contains(all[:i], n) {
				fault(field, "%q appears twice", n)
			}
		}
	}
	name("cap/id", m.ID)
	for _, optional := range [][2]string{{"cap/kind", m.Kind}, {"io/in-schema", m.In}, {"io/out-schema", m.Out}} {
		if optional[1] != "" {
			name(optional[0], optional[1])
		}
	}
	names("cap/intents", m.Intents)
	names("cap/needs", m.Needs)
	names("cap/effects-allowed", m.Effects)
	names("cap/tags", m.Tags)
	names("cap/can-produce", m.CanProduce)
	for _, t := range m.CanProduce {
		if !slices.Contains(replyTypes, t) {
			fault("cap/can-produce", "expected %s, found %q", strings.Join(replyTypes, ", "), t)
		}
	}
	if m.CanProduce != nil && len(m.CanProduce) == 0 {
		fault("cap/can-produce", "expected at least one of %s", strings.Join(replyTypes, ", "))
	}
	for field, n := range m.numbers() {
		if !(n >= 0) || math.IsInf(n, 1) {
			fault(field, "expected a number of at least 0, found %v", n)
		}
	}
	slices.SortStableFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}

// numbers returns the values of the numeric fields, which must not be negative, by name.
func (m Metadata) numbers() map[string]float64 {
	return map[string]float64{
		"cap/cost.latency-ms":                  float64(m.Cost.Latency.Milliseconds()),
		"cap/cost.usd":                         m.Cost.USD,
		"cap/cost.usd-per-mtok-in":             m.Cost.In,
		"cap/cost.usd-per-mtok-out":            m.Cost.Out,
		"cap/cost.usd-per-mtok-cache-read":     m.Cost.CacheRead,
		"cap/cost.usd-per-mtok-cache-write":    m.Cost.CacheWrite,
		"cap/cost.usd-per-mtok-cache-write-1h": m.Cost.CacheHour,
		"cap/cost.usd-per-1000-searches":       m.Cost.Search,
		"cap/limits.timeout-ms":                float64(m.Limits.Timeout.Milliseconds()),
		"cap/limits.concurrency":               float64(m.Limits.Concurrency),
		"cap/limits.per-minute":                float64(m.Limits.PerMinute),
	}
}

// MarshalJSON encodes c with the latency in milliseconds.
func (c Cost) MarshalJSON() ([]byte, error) {
	type fields Cost
	return json.Marshal(struct {
		LatencyMS int64 `json:"latency-ms,omitempty"`
		fields
	}{c.Latency.Milliseconds(), fields(c)})
}

// MarshalJSON encodes l with the timeout in milliseconds.
func (l Limits) MarshalJSON() ([]byte, error) {
	type fields Limits
	return json.Marshal(struct {
		TimeoutMS int64 `json:"timeout-ms,omitempty"`
		fields
	}{l.Timeout.Milliseconds(), fields(l)})
}

// Of returns the cost of an invocation with usage u, in USD.
func (c Cost) Of(u budget.Usage) float64 { return c.USD + c.Price.Of(u) }
