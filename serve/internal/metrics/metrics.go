// Package metrics holds the metrics of a server and writes them in Prometheus's text format, version 0.0.4 (prometheus.io,
// "Exposition formats"). Prometheus's client library would add five modules to every program that contains a server.
package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ContentType is the media type of the text that Set.Text returns.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// most is the maximum number of series per metric. Further combinations of label values are counted in one series, with the value
// "other" for every label.
const most = 500

// A Set is a set of metrics. The zero Set is empty. The methods of a Set and its metrics are safe for concurrent use.
type Set struct {
	mu       sync.Mutex
	families []*family
}

// A family is a metric with all its label values.
type family struct {
	name, help, kind string
	labels           []string
	bounds           []float64 // bounds of a histogram's buckets

	mu     sync.Mutex
	series map[string]*series // by labels as written in the output
}

type series struct {
	value  float64 // value of a counter or gauge; sum of a histogram
	counts []uint64
}

func (s *Set) add(f *family) *family {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.series = map[string]*series{}
	s.families = append(s.families, f)
	return f
}

// at returns the series with the label values. The caller holds f.mu.
func (f *family) at(values []string) *series {
	key := f.pairs(values)
	one := f.series[key]
	if one == nil && len(f.series) >= most {
		key = f.pairs(slices.Repeat([]string{"other"}, len(f.labels)))
		one = f.series[key]
	}
	if one == nil {
		one = &series{counts: make([]uint64, len(f.bounds)+1)}
		f.series[key] = one
	}
	return one
}

// escape escapes label values.
var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// pairs returns the labels with their values, for example a="x",b="y".
func (f *family) pairs(values []string) string {
	var b strings.Builder
	for i, name := range f.labels {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name + `="`)
		_, _ = escape.WriteString(&b, strings.ToValidUTF8(values[i], "\uFFFD"))
		b.WriteByte('"')
	}
	return b.String()
}

// A Counter is a number that only increases.
type Counter struct{ f *family }

// Counter adds a counter to the set. A counter without labels is present from the start, with the value 0.
func (s *Set) Counter(name, help string, labels ...string) Counter {
	c := Counter{s.add(&family{name: name, help: help, kind: "counter", labels: labels})}
	if len(labels) == 0 {
		c.Add(0)
	}
	return c
}

// Add adds n to the series with the label values, one value for each label. A negative n is ignored.
func (c Counter) Add(n float64, values ...string) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.at(values).value += max(n, 0)
}

// A Histogram counts observed values in buckets.
type Histogram struct{ f *family }

// Histogram adds a histogram to the set. The upper bounds of the buckets must be in ascending order.
func (s *Set) Histogram(name, help string, bounds []float64, labels ...string) Histogram {
	return Histogram{s.add(&family{name: name, help: help, kind: "histogram", labels: labels, bounds: bounds})}
}

// Observe counts a value.
func (h Histogram) Observe(v float64, values ...string) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	one := h.f.at(values)
	one.value += v
	at, _ := slices.BinarySearch(h.f.bounds, v) // upper bounds are inclusive
	one.counts[at]++
}

// A Gauge is a number that can go up and down.
type Gauge struct{ f *family }

// Gauge adds a gauge to the set.
func (s *Set) Gauge(name, help string, labels ...string) Gauge {
	return Gauge{s.add(&family{name: name, help: help, kind: "gauge", labels: labels})}
}

// A Reading is the value of a gauge for one combination of label values.
type Reading struct {
	Value  float64
	Labels []string
}

// Set replaces all values of the gauge.
func (g Gauge) Set(all ...Reading) {
	g.f.mu.Lock()
	defer g.f.mu.Unlock()
	clear(g.f.series)
	for _, r := range all {
		g.f.at(r.Labels).value += r.Value
	}
}

// Text returns the metrics, in the order in which they were added.
func (s *Set) Text() []byte {
	s.mu.Lock()
	families := slices.Clone(s.families)
	s.mu.Unlock()
	var b bytes.Buffer
	for _, f := range families {
		f.write(&b)
	}
	return b.Bytes()
}

func (f *family) write(b *bytes.Buffer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.series) == 0 {
		return
	}
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", f.name, strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(f.help), f.name, f.kind)
	for _, labels := range slices.SortedFunc(maps.Keys(f.series), cmp.Compare[string]) {
		one := f.series[labels]
		if f.kind != "histogram" {
			f.line(b, "", labels, "", number(one.value))
			continue
		}
		var count uint64
		for i, n := range one.counts {
			bound := math.Inf(1)
			if i < len(f.bounds) {
				bound = f.bounds[i]
			}
			count += n
			f.line(b, "_bucket", labels, `le="`+number(bound)+`"`, strconv.FormatUint(count, 10))
		}
		f.line(b, "_sum", labels, "", number(one.value))
		f.line(b, "_count", labels, "", strconv.FormatUint(count, 10))
	}
}

// line writes a sample.
func (f *family) line(b *bytes.Buffer, suffix, labels, more, value string) {
	if labels != "" && more != "" {
		labels += ","
	}
	if labels += more; labels != "" {
		labels = "{" + labels + "}"
	}
	fmt.Fprintf(b, "%s%s%s %s\n", f.name, suffix, labels, value)
}

func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
