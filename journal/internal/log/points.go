package log

import "sync/atomic"

// Points calls a function of tests at the points of a step and of a commit. Goroutines of the journal
// reach them while a test changes the function.
type Points struct {
	call atomic.Pointer[func(point string)]
}

// Call sets the function; nil is none.
func (p *Points) Call(f func(point string)) {
	if f == nil {
		p.call.Store(nil)
		return
	}
	p.call.Store(&f)
}

// Reached is for [Options].
func (p *Points) Reached(point string) {
	if f := p.call.Load(); f != nil {
		(*f)(point)
	}
}
