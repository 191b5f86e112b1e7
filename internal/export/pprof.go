package export

import (
	"compress/gzip"
	"container/heap"
	"io"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/journal"
)

// Pprof writes the steps of a run as a gzipped profile. The stack of a step is its
// address; lanes, rounds, visits and attempts of one step are one function with labels.
// Its values are money in microdollars, tokens, attempts that declared a cost, and wall
// time without the steps within it. Costs of lanes that ran at once are summed,
// and so are their times.
//
// The format is defined by github.com/google/pprof/blob/main/proto/profile.proto.
func Pprof(w io.Writer, run journal.RunInfo, steps iter.Seq2[journal.Step, error]) error {
	z := gzip.NewWriter(w)
	p := profile{strings: map[string]int64{}, functions: map[string]uint64{}}
	p.text("") // has number 0
	for _, t := range [][2]string{{"cost", "microdollars"}, {"tokens", "count"}, {"calls", "count"}, {"wall", "nanoseconds"}} {
		p.out.message(1, func(m *message) { m.int(1, p.text(t[0])); m.int(2, p.text(t[1])) })
	}
	open := &open{at: map[string]*within{}, queue: queue{less: func(a, b *journal.Step) bool {
		return !a.Ended.IsZero() && (b.Ended.IsZero() || a.Ended.Before(b.Ended))
	}}}
	for s, err := range sorted(steps) {
		if err != nil {
			return err
		}
		open.close(s.Started, p.sample)
		open.add(s)
		if err := p.flush(z); err != nil {
			return err
		}
	}
	open.close(time.Time{}, p.sample)
	if !run.Started.IsZero() {
		p.out.int(9, run.Started.UnixNano())
		p.out.int(10, int64(max(run.Ended.Sub(run.Started), 0)))
	}
	p.out.int(13, p.text("run "+run.ID+" of "+run.Pipeline))
	p.out.int(14, p.text("cost"))
	if _, err := z.Write(p.out); err != nil {
		return err
	}
	return z.Close()
}

// wall is how long the last attempt of a step took.
func wall(s journal.Step) time.Duration {
	if s.Started.IsZero() || s.Ended.IsZero() {
		return 0
	}
	return max(s.Ended.Sub(s.Started), 0)
}

// open has the steps within which others may still start, by path and, in the queue, by their ends.
type open struct {
	queue
	at map[string]*within
}

// within is how long the steps right within a step took. Those that ran at once count as long as any of them ran.
type within struct {
	steps int // at the path: a leaf and its value
	sum   time.Duration
	end   time.Time // of the last one
}

func (o *open) add(s journal.Step) {
	for up := address.Parent(s.Path); up != ""; up = address.Parent(up) {
		if w := o.at[up]; w != nil {
			from := later(s.Started, w.end)
			if s.Ended.After(from) && !s.Started.IsZero() {
				w.sum += s.Ended.Sub(from)
				w.end = s.Ended
			}
			break
		}
	}
	if o.at[s.Path] == nil {
		o.at[s.Path] = &within{}
	}
	o.at[s.Path].steps++
	heap.Push(o, &s)
}

// close calls f with the steps that ended before a time, all if it is zero, and how long each took by itself.
func (o *open) close(before time.Time, f func(s journal.Step, own time.Duration)) {
	for o.Len() > 0 && (before.IsZero() || !o.steps[0].Ended.IsZero() && o.steps[0].Ended.Before(before)) {
		s := *heap.Pop(o).(*journal.Step)
		w := o.at[s.Path]
		f(s, max(wall(s)-w.sum, 0))
		if w.steps--; w.steps == 0 {
			delete(o.at, s.Path)
		}
	}
}

// profile is a profile while it is written.
type profile struct {
	out       message
	strings   map[string]int64
	texts     int64
	functions map[string]uint64
}

// mostTexts bounds the texts that are found again: lanes may have millions of labels, which are written once each anyway.
const mostTexts = 1000

// text returns the number of a text in the table of strings, which it writes if it is new.
func (p *profile) text(s string) int64 {
	i, known := p.strings[s]
	if !known {
		i = p.texts
		p.out.bytes(6, []byte(s))
		if p.texts++; i < mostTexts {
			p.strings[s] = i
		}
	}
	return i
}

// flush writes what is finished.
func (p *profile) flush(w io.Writer) error {
	const some = 16 << 10
	if len(p.out) < some {
		return nil
	}
	_, err := w.Write(p.out)
	p.out = p.out[:0]
	return err
}

// function returns the location of a name, which it writes once.
func (p *profile) function(name string) uint64 {
	id, known := p.functions[name]
	if !known {
		id = uint64(len(p.functions) + 1)
		p.functions[name] = id
		p.out.message(5, func(m *message) {
			m.int(1, int64(id))
			m.int(2, p.text(name))
		})
		p.out.message(4, func(m *message) {
			m.int(1, int64(id))
			m.message(4, func(line *message) { line.int(1, int64(id)) })
		})
	}
	return id
}

// sample writes the values of a step.
func (p *profile) sample(s journal.Step, own time.Duration) {
	calls := 0
	if s.Declared != (budget.Amount{}) || s.Usage != (budget.Usage{}) {
		calls = s.Attempts
	}
	values := []int64{int64(math.Round(s.Usage.USD * 1e6)), int64(s.Usage.InputTokens + s.Usage.OutputTokens), int64(calls), int64(own)}
	var stack []uint64
	var labels [][2]string
	for segment := range address.Segments(s.Path) {
		parsed := address.Parse(segment)
		stack = append(stack, p.function(parsed.Name))
		for _, m := range parsed.Marks {
			labels = append(labels, [2]string{parsed.Name, string(m.Kind) + m.Text})
		}
	}
	slices.Reverse(stack) // the innermost first
	if s.Failure != "" {
		labels = append(labels, [2]string{"failure", s.Failure})
	}
	if s.From != "" {
		labels = append(labels, [2]string{"reused from", s.From})
	}
	p.out.message(2, func(m *message) {
		for _, id := range stack {
			m.int(1, int64(id))
		}
		for _, v := range values {
			m.always(2, v)
		}
		for _, l := range labels {
			m.message(3, func(label *message) { label.int(1, p.text(l[0])); label.int(2, p.text(l[1])) })
		}
	})
}

// message is a protocol buffer. Zero fields are left out.
type message []byte

func (m *message) varint(v uint64) {
	for ; v >= 0x80; v >>= 7 {
		*m = append(*m, byte(v)|0x80)
	}
	*m = append(*m, byte(v))
}

func (m *message) int(field int, v int64) {
	if v != 0 {
		m.always(field, v)
	}
}

func (m *message) always(field int, v int64) {
	m.varint(uint64(field) << 3)
	m.varint(uint64(v))
}

func (m *message) bytes(field int, b []byte) {
	m.varint(uint64(field)<<3 | 2)
	m.varint(uint64(len(b)))
	*m = append(*m, b...)
}

func (m *message) message(field int, fill func(*message)) {
	var inner message
	fill(&inner)
	m.bytes(field, inner)
}
