package call

import (
	"cmp"
	"slices"

	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
)

// switchesOn lists the failure types after which, by default, another capability is invoked.
var switchesOn = []string{reasons.SchemaInvalid, reasons.FormatDrift, reasons.LowScore, reasons.MustFailed, reasons.SoftTimeout, reasons.Unavailable, reasons.InvokeFailed}

// effective is a policy applied to one call. Its levels, the most specific first, are the
// call itself, its intent, the default and the routing.
type effective struct {
	done, admit  Done // their ScoreMin is never nil
	host         Done // the policy's admit, which a call cannot weaken
	sameCapMax   int
	fallbackMax  int // negative means unlimited
	switchOn     []string
	switchStated bool // whether a level sets switchOn, so that Error.Retryable is ignored
	judge        judging
	cache        Cache
}

type judging struct {
	on, veto, open bool
	weight, canary float64
	attempts       int
	cap, rubric    string
}

// resolve applies all levels of the policy. A tool is retried only if the call itself sets retries, because every attempt would
// have the tool's effects again. A tool is never judged.
func (p *Policy) resolve(s *Spec) effective {
	intent := p.Intents[s.Intent]
	levels := []Rules{{Done: s.Done, Admit: s.Admit, Retry: s.Dispatch.Retry, SwitchOn: s.Dispatch.SwitchOn}, intent, p.Default,
		{Retry: p.Routing.Retry, SwitchOn: p.Routing.SwitchOn}}
	if s.Tool != "" {
		levels = []Rules{levels[0], {Done: p.Default.Done, Admit: p.Default.Admit}}
	}
	e := effective{done: Done{ScoreMin: new(0.0)}, admit: Done{ScoreMin: new(0.0)}, host: Done{ScoreMin: new(0.0)}, fallbackMax: -1, switchOn: switchesOn, judge: judging{weight: 0.5, canary: 1, attempts: 1}}
	for i, l := range slices.Backward(levels) {
		e.done.over(l.Done)
		e.admit.over(l.Admit)
		if i > 0 {
			e.host.over(l.Admit)
		}
		over(&e.judge.on, l.Judge.On)
		over(&e.judge.veto, l.Judge.Veto)
		over(&e.judge.weight, l.Judge.Weight)
		over(&e.judge.canary, l.Judge.Canary)
		over(&e.judge.attempts, l.Judge.MaxAttempts)
		e.judge.cap, e.judge.rubric = cmp.Or(l.Judge.Cap, e.judge.cap), cmp.Or(l.Judge.Rubric, e.judge.rubric)
		if l.Judge.OnError != "" {
			e.judge.open = l.Judge.OnError == "open"
		}
		over(&e.sameCapMax, l.Retry.SameCapMax)
		over(&e.fallbackMax, l.Retry.FallbackMax)
		if l.SwitchOn != nil {
			e.switchOn, e.switchStated = l.SwitchOn, true
		}
	}
	if e.cache = s.Cache; e.cache.MaxAge == nil && s.Tool == "" {
		e.cache = intent.Cache
	}
	e.judge.on = e.judge.on && s.Intent != terms.Grade
	return e
}

// fallback returns the capabilities to invoke after the candidates that the call lists.
func (p *Policy) fallback(intent string) []string {
	return slices.Concat(p.Default.Fallback, p.Intents[intent].Fallback, p.Routing.Fallback)
}

// recoverable reports whether another capability may be invoked after the given failure.
func (e *effective) recoverable(err *Error) bool {
	return slices.Contains(e.switchOn, err.Type) || err.Retryable && !e.switchStated
}

// over adds the checks of a more specific level and adopts its minimum score.
func (d *Done) over(level Done) {
	d.Must, d.Should = union(d.Must, level.Must), union(d.Should, level.Should)
	over(d.ScoreMin, level.ScoreMin)
}

// over sets *to to *by, the value of a more specific level, unless by is nil.
func over[T any](to *T, by *T) {
	if by != nil {
		*to = *by
	}
}

// union returns the names in a or b, each once.
func union(a, b []string) []string {
	for _, name := range b {
		if !slices.Contains(a, name) {
			a = append(slices.Clip(a), name)
		}
	}
	return a
}
