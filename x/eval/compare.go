package eval

import (
	"encoding/json"
	"slices"

	"github.com/stonelayer/stone/internal/text"
)

// A comparison is the difference between an evaluation and a baseline, for the cases that both contain.
type comparison struct {
	With    string          `json:"with"`
	Cases   int             `json:"cases"`             // cases that both contain
	New     int             `json:"new,omitempty"`     // cases that the baseline does not contain
	Missing int             `json:"missing,omitempty"` // cases of the baseline that were not evaluated
	Scores  []scoreCompared `json:"scores"`            // differences by scorer, for scorers that both have
	USD     Estimate        `json:"usd"`               // difference in cost per case
	Seconds Estimate        `json:"seconds"`           // difference in latency per case
}

// scoreCompared is the difference in the results of one scorer. The difference is positive if the score is now higher than in the
// baseline.
type scoreCompared struct {
	Name string `json:"name"`
	Estimate
	// The p-value P comes from McNemar's exact test for binary scores, and from Student's test for others.
	Gained int             `json:"gained"` // cases that are right only now
	Lost   int             `json:"lost"`   // cases that were right only before
	P      float64         `json:"p"`
	Slices []sliceCompared `json:"slices,omitempty"`
	Turned []Turned        `json:"turned,omitempty"` // first lost cases, then first gained ones
}

// sliceCompared is the difference for the cases that have one value in a column.
type sliceCompared struct {
	slice
	P float64 `json:"p"` // adjusted for all slices of the score by Holm's method
}

// Turned is a case whose verdict has changed or, in ScoreReport.Missed, a wrong trial.
type Turned struct {
	Case   string  `json:"case"`
	Path   string  `json:"path"`            // path of its first trial in the run
	Input  string  `json:"input,omitempty"` // input of the case, on a line of at most 160 columns
	Before float64 `json:"before"`
	Now    float64 `json:"now"`
	// Expected is the expected output. It is nil if there is none or if it has more than 1000 bytes.
	Expected json.RawMessage `json:"expected,omitempty"`
}

// columnsOfInput is the maximum width of a listed case's input.
const columnsOfInput = 160

// maxExpected is the maximum size of a listed case's expected output, in bytes.
const maxExpected = 1000

// maxTurned is the maximum number of turned cases listed in a comparison.
const maxTurned = 50

// pairs holds the scores of the cases that have a score both now and in the baseline.
type pairs struct {
	before, now []float64
	at          []int // indexes of the cases
}

func (p *pairs) add(before, now float64, at int) {
	p.before, p.now, p.at = append(p.before, before), append(p.now, now), append(p.at, at)
}

func (p *pairs) differences() []float64 {
	d := make([]float64, len(p.now))
	for i := range d {
		d[i] = p.now[i] - p.before[i]
	}
	return d
}

// pairs returns the scores given by a scorer, now and in the baseline. It returns nil if the baseline does not have the scorer.
func (e *evaluation) pairs(t *tally, scorer int) *pairs {
	then := slices.Index(e.Against.scorers, e.Scorers[scorer].name)
	if then < 0 {
		return nil
	}
	p := &pairs{}
	for i, trials := range t.trials {
		before, known := e.Against.cases[e.data.rows[i].id()]
		if now, ok := mean(trials, scorer); ok && known && before.Scores[then] != nil {
			p.add(*before.Scores[then], now, i)
		}
	}
	return p
}

func (e *evaluation) compare(t *tally) *comparison {
	c := &comparison{With: e.Against.name, Missing: len(e.Against.cases)}
	var usd, seconds pairs
	for i := range t.trials {
		before, known := e.Against.cases[e.data.rows[i].id()]
		if !known {
			c.New++
			continue
		}
		c.Cases++
		c.Missing--
		now := caseResult(t.trials[i], t.costs[i], 0)
		usd.add(before.USD, now.USD, i)
		seconds.add(before.Seconds, now.Seconds, i)
	}
	c.USD = student(usd.differences(), e.clusters(usd.at))
	if e.prior == 0 { // answering from records takes no time
		c.Seconds = student(seconds.differences(), e.clusters(seconds.at))
	}
	for i, s := range e.Scorers {
		if p := e.pairs(t, i); p != nil {
			c.Scores = append(c.Scores, e.compared(s.name, p))
		}
	}
	return c
}

func (e *evaluation) compared(name string, p *pairs) scoreCompared {
	s := scoreCompared{Name: name, Estimate: difference(p.before, p.now, e.clusters(p.at))}
	var lost, gained []Turned
	paths := e.paths()
	for i := range p.now {
		turned := Turned{Case: e.data.rows[p.at[i]].id(), Path: paths(p.at[i], 1), Before: p.before[i], Now: p.now[i]}
		switch {
		case p.before[i] >= 1 && p.now[i] < 1:
			lost = append(lost, turned)
		case p.before[i] < 1 && p.now[i] >= 1:
			gained = append(gained, turned)
		}
	}
	s.Gained, s.Lost, s.P = len(gained), len(lost), p.value(s.Estimate)
	all := append(lost, gained...)
	s.Turned = all[:min(len(all), maxTurned)]
	for i := range s.Turned {
		e.data.tell(&s.Turned[i])
	}
	s.Slices = e.slicesCompared(p)
	return s
}

// tell sets the fields of t that show the input and the expected output of its case.
func (set *dataset) tell(t *Turned) {
	if input, expected, err := set.content(set.rows[set.byID[t.Case]]); err == nil { // cannot fail: newRow has written the row
		if t.Input = text.Content(input, columnsOfInput); len(expected) <= maxExpected {
			t.Expected = expected
		}
	}
}

// value returns the p-value of a difference.
func (p *pairs) value(d Estimate) float64 {
	gained, lost := 0, 0
	for i, now := range p.now {
		switch before := p.before[i]; {
		case before != 0 && before != 1 || now != 0 && now != 1 || d.Clusters < d.N:
			return d.PValue()
		case now > before:
			gained++
		case now < before:
			lost++
		}
	}
	return mcNemar(gained, lost)
}

func (e *evaluation) slicesCompared(p *pairs) (all []sliceCompared) {
	var raw []float64
	for i, column := range e.data.Slices {
		values, of := e.parts(i, p.at)
		for _, value := range values {
			part := &pairs{}
			for _, k := range of[value] {
				part.add(p.before[k], p.now[k], p.at[k])
			}
			d := difference(part.before, part.now, e.clusters(part.at))
			all = append(all, sliceCompared{slice: slice{column, value, d}})
			raw = append(raw, part.value(d))
		}
	}
	for i, adjusted := range holm(raw) {
		all[i].P = adjusted
	}
	return all
}
