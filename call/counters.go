package call

import (
	"maps"
	"strings"
	"sync"

	"github.com/stonelayer/stone/internal/reasons"
)

// Counters counts calls and attempts. The zero value is ready to use; a nil *Counters counts nothing. Any number of runs and
// goroutines may use the same Counters at once.
type Counters struct {
	mu    sync.Mutex
	tally Tally
}

// A Tally is a snapshot of Counters.
type Tally struct {
	Calls        int            `json:"calls/total"`
	Succeeded    int            `json:"calls/succeeded"`
	Failed       int            `json:"calls/failed"`
	FailureTypes map[string]int `json:"calls/failure-types,omitempty"` // failed calls, by failure type
	Retries      int            `json:"calls/retries"`                 // the number of attempts after a capability's first
	FallbackHops int            `json:"calls/fallback-hops"`           // the number of capabilities invoked after a call's first
	Attempts     int            `json:"attempts/total"`                // all attempts, including repairs
	MustFailed   int            `json:"quality/must-failed"`           // the number of attempts with a failed must
	JudgeUsed    int            `json:"quality/judge-used"`
	JudgePass    int            `json:"quality/judge-pass"`
}

// Count adds the finished call that r describes. Calls of tools are not counted.
func (c *Counters) Count(r *Record) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.tally
	t.Calls++
	if r.Failure == "" {
		t.Succeeded++
	} else {
		t.Failed++
		if t.FailureTypes == nil {
			t.FailureTypes = map[string]int{}
		}
		t.FailureTypes[r.Failure]++
	}
	t.Attempts += len(r.Tried)
	tried := map[string]bool{}
	for _, a := range r.Tried {
		if len(a.MustFailed) > 0 {
			t.MustFailed++
		}
		if a.Judge != nil || a.Failure == reasons.JudgeInvalid {
			t.JudgeUsed++
			if a.Failure == "" {
				t.JudgePass++
			}
		}
		switch {
		case a.Repair:
		case tried[a.Cap]:
			t.Retries++
		default:
			if len(tried) > 0 {
				t.FallbackHops++
			}
			tried[a.Cap] = true
		}
	}
}

// Tally returns the counts so far.
func (c *Counters) Tally() Tally {
	if c == nil {
		return Tally{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tally
	t.FailureTypes = maps.Clone(t.FailureTypes)
	return t
}

// KPIs are the rates computed from a Tally. A rate is nil if its denominator is zero.
type KPIs struct {
	ParseRate      *float64       `json:"parse-rate"`       // the share of calls that did not fail with schema/invalid or format/drift
	RetryRate      *float64       `json:"retry-rate"`       // per call
	FallbackRate   *float64       `json:"fallback-rate"`    // per call
	JudgePassRate  *float64       `json:"judge-pass-rate"`  // passed judgements per judgement
	MustFailedRate *float64       `json:"must-failed-rate"` // the share of attempts with a failed must
	ByType         map[string]int `json:"by-type"`          // failed calls by type
	ByDomain       map[string]int `json:"by-domain"`        // failed calls by domain: the part of the type before the slash
}

// KPIs computes the rates.
func (t Tally) KPIs() KPIs {
	unread := t.FailureTypes[reasons.SchemaInvalid] + t.FailureTypes[reasons.FormatDrift]
	k := KPIs{
		ParseRate:      rate(t.Calls-unread, t.Calls),
		RetryRate:      rate(t.Retries, t.Calls),
		FallbackRate:   rate(t.FallbackHops, t.Calls),
		JudgePassRate:  rate(t.JudgePass, t.JudgeUsed),
		MustFailedRate: rate(t.MustFailed, t.Attempts),
		ByType:         map[string]int{},
		ByDomain:       map[string]int{},
	}
	for failure, n := range t.FailureTypes {
		domain, _, _ := strings.Cut(failure, "/")
		k.ByType[failure] += n
		k.ByDomain[domain] += n
	}
	return k
}

func rate(n, of int) *float64 {
	if of == 0 {
		return nil
	}
	r := float64(n) / float64(of)
	return &r
}
