package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stonelayer/stone/journal"
)

// A span is a period shown as bars. Long pauses are folded: otherwise a run that waited overnight for an answer would show mostly
// the night.
type span struct {
	from, to time.Time
	idle     []pause // in order of time
}

// A pause is a period in which nothing ran.
type pause struct{ from, to time.Time }

func (s *span) add(from, to time.Time) {
	if !from.IsZero() && (s.from.IsZero() || from.Before(s.from)) {
		s.from = from
	}
	for _, t := range []time.Time{from, to} {
		if t.After(s.to) {
			s.to = t
		}
	}
}

// fold finds pauses between steps that are long compared with all steps together.
func (s *span) fold(steps []journal.Step) {
	started := slices.DeleteFunc(slices.Clone(steps), func(one journal.Step) bool { return one.Started.IsZero() })
	slices.SortFunc(started, func(a, b journal.Step) int { return a.Started.Compare(b.Started) })
	end, busy := s.from, time.Duration(0)
	var gaps []pause
	for _, one := range started {
		stop := cmp.Or(one.Ended, one.Started)
		if one.Started.Before(s.from) || stop.After(s.to) {
			continue // a step outside the span
		}
		if one.Started.After(end) {
			gaps = append(gaps, pause{end, one.Started})
			end = one.Started
		}
		if stop.After(end) {
			busy, end = busy+stop.Sub(end), stop
		}
	}
	for _, g := range gaps {
		if long := g.to.Sub(g.from); long > time.Second && long > busy/4 {
			s.idle = append(s.idle, g)
		}
	}
}

// Folded returns the time that the bars omit.
func (s span) Folded() (sum time.Duration) {
	for _, p := range s.idle {
		sum += p.to.Sub(p.from)
	}
	return sum
}

// at returns the time since the start, without pauses.
func (s *span) at(t time.Time) float64 {
	d := t.Sub(s.from)
	for _, p := range s.idle {
		if t.After(p.from) {
			d -= min(t.Sub(p.from), p.to.Sub(p.from))
		}
	}
	return d.Seconds()
}

// Length returns the length of the bars, without pauses.
func (s span) Length() time.Duration {
	return s.to.Sub(s.from) - s.Folded()
}

// breaks returns the SVG path of the marks where pauses are folded.
func (s *span) breaks() string {
	whole, path := s.at(s.to), ""
	const most = 40
	for _, p := range s.idle[:min(len(s.idle), most)] {
		if whole > 0 {
			path += fmt.Sprintf("M%.1f 0V10", s.at(p.from)/whole*barWidth)
		}
	}
	return path
}

// barWidth is the width of a span in drawing units.
const barWidth = 160

// A bar is the time of a step in drawing units.
type bar struct {
	X, Width float64
	Breaks   string // SVG path of the pause marks
}

// bar returns the bar between two times, or nil if they are unknown.
func (s *span) bar(from, to time.Time) *bar {
	whole := s.at(s.to)
	if from.IsZero() || whole <= 0 {
		return nil
	}
	if to.IsZero() {
		to = s.to
	}
	const least = 1.5 // minimum visible width
	x := s.at(from) / whole * barWidth
	width := max((s.at(to)-s.at(from))/whole*barWidth, least)
	return &bar{X: min(max(x, 0), barWidth-least), Width: min(width, barWidth), Breaks: s.breaks()}
}
