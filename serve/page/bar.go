package page

import "time"

// span is a part of time, in which bars are drawn.
type span struct{ from, to time.Time }

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

// now makes the span last until now.
func (s *span) now() { s.add(time.Time{}, time.Now()) }

// barWidth is the width of a span, in units of a drawing.
const barWidth = 160

// bar is when something ran, in the units of the span.
type bar struct{ X, Width float64 }

// bar returns the bar of what ran from one time to another, nil if that is unknown.
func (s *span) bar(from, to time.Time) *bar {
	whole := s.to.Sub(s.from).Seconds()
	if from.IsZero() || whole <= 0 {
		return nil
	}
	if to.IsZero() {
		to = s.to
	}
	const least = 1.5 // so that it can be seen
	width := max(to.Sub(from).Seconds()/whole*barWidth, least)
	return &bar{X: min(max(from.Sub(s.from).Seconds()/whole*barWidth, 0), barWidth-least), Width: min(width, barWidth)}
}
