package eval

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/stonelayer/stone/dag"
)

// A Baseline holds the results of an evaluation, so that later evaluations can be compared with it. It is read from the DAG of a
// run, or from a file written by Write, which has a few dozen bytes for each case.
type Baseline struct {
	name    string // name of the run or the file
	scorers []string
	cases   map[string]baselineCase
	order   []string
}

// baselineCase is the result of one case: the mean of its trials.
type baselineCase struct {
	Case    string     `json:"case"`
	Scores  []*float64 `json:"scores"` // mean score by scorer; null if all trials are errors
	USD     float64    `json:"usd,omitempty"`
	Seconds float64    `json:"seconds,omitempty"`
}

type baselineHead struct {
	Scorers []string `json:"scorers"`
}

// BaselineOf returns the results of a finished evaluation, read from the DAG of its run. The argument name is the baseline's name
// in reports.
func BaselineOf(name string, d dag.DAG) (*Baseline, error) {
	report, err := Result.From(d)
	if err != nil {
		return nil, fmt.Errorf("run %s is not a finished evaluation", name)
	}
	b := &Baseline{name: name, cases: map[string]baselineCase{}}
	for _, s := range report.Scores {
		b.scorers = append(b.scorers, s.Name)
	}
	nodes, err := d.All(results.Name())
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		found, costs, err := resultsOf(n)
		if err != nil {
			return nil, err
		}
		for start := 0; start < len(found.Rows); {
			end := start + 1
			if found.Rows[start].Trial == 0 { // the trial belongs to a recorded run
				start = end
				continue
			}
			for end < len(found.Rows) && found.Rows[end].Case == found.Rows[start].Case {
				end++
			}
			b.add(caseResult(found.Rows[start:end], costs[start:end], len(b.scorers)))
			start = end
		}
	}
	return b, nil
}

// checkAgainst returns an error if the baseline contains none of the cases.
func (e *evaluation) checkAgainst() error {
	if e.Against == nil {
		return nil
	}
	for _, r := range e.data.rows {
		if _, known := e.Against.cases[r.id()]; known {
			return nil
		}
	}
	return fmt.Errorf("%s contains none of the %d cases: compare with a run on the same data and the same column of expected outputs", e.Against.name, len(e.data.rows))
}

// caseResult returns the result of a case's trials.
func caseResult(trials []outcome, costs []cost, scorers int) baselineCase {
	c := baselineCase{Case: trials[0].Case, Scores: make([]*float64, scorers)}
	for i := range scorers {
		if m, ok := mean(trials, i); ok {
			c.Scores[i] = &m
		}
	}
	for _, spent := range costs {
		c.USD += (spent.USD + spent.Past.USD) / float64(len(costs))
		c.Seconds += spent.Seconds / float64(len(costs))
	}
	return c
}

func (b *Baseline) add(c baselineCase) {
	if _, known := b.cases[c.Case]; !known {
		b.order = append(b.order, c.Case)
	}
	b.cases[c.Case] = c
}

// Write writes the baseline as JSON Lines: first the names of the scorers, then one case per line.
func (b *Baseline) Write(w io.Writer) error {
	buffered := bufio.NewWriter(w)
	enc := json.NewEncoder(buffered)
	err := enc.Encode(baselineHead{b.scorers})
	for _, id := range b.order {
		if err == nil {
			err = enc.Encode(b.cases[id])
		}
	}
	return errors.Join(err, buffered.Flush())
}

// ReadBaseline reads a baseline from a file that Write has written.
func ReadBaseline(file string) (*Baseline, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := &Baseline{name: file, cases: map[string]baselineCase{}}
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, maxRow)
	for n := 1; scan.Scan(); n++ {
		if err := b.line(n, scan.Bytes()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if b.scorers == nil {
		return nil, fmt.Errorf("%s is empty: stone eval --save writes a baseline", file)
	}
	return b, nil
}

func (b *Baseline) line(n int, data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if n == 1 {
		var head baselineHead
		if dec.Decode(&head) != nil || len(head.Scorers) == 0 {
			return errors.New("it is not a baseline: want {\"scorers\": […]}, as stone eval --save writes it")
		}
		b.scorers = head.Scorers
		return nil
	}
	var c baselineCase
	if err := dec.Decode(&c); err != nil || c.Case == "" || len(c.Scores) != len(b.scorers) {
		return fmt.Errorf("it is not a case: want one with %d scores", len(b.scorers))
	}
	b.add(c)
	return nil
}

// digest returns a digest of the contents.
func (b *Baseline) digest() (string, error) {
	h := sha256.New()
	err := b.Write(h)
	return hex.EncodeToString(h.Sum(nil)), err
}
