package eval

import (
	"context"
	"encoding/json"
	"math"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/schema"
)

// Verdicts of a Score.
const (
	right    = "right"
	wrong    = "wrong"
	noAnswer = "no answer" // the pipeline itself failed; the score is 0
	errored  = "error"     // a provider or a scorer failed; excluded from the mean
)

// A Score is a scorer's assessment of an answer.
type Score struct {
	Value   float64 `json:"value"`
	Verdict string  `json:"verdict,omitempty"` // "right", "wrong", "no answer" or "error"; if empty, "right" for a Value of at least 1, otherwise "wrong"
	Reason  string  `json:"reason,omitempty"`
}

// A Case is an answer together with all data that a scorer can read.
type Case struct {
	ID       string
	Trial    int                        // number of the trial, from 1
	Input    json.RawMessage            // content of the input node; if there are several, an object with their contents by type
	Output   json.RawMessage            // content of the last node, without an agent's conversation
	Expected json.RawMessage            // expected output; nil if the row has none
	Nodes    map[string]json.RawMessage // content of the last node that the pipeline has created, by type
	Usage    budget.Usage
}

// A Scorer scores answers. It is a leaf of the evaluation.
type Scorer struct {
	name string
	leaf func(*dataset) stone.Ashlar
	// calls lists the types of the nodes that the scorer's calls produce. The cost of these nodes is part of the report.
	calls []dag.Querier
	share bool                                  // all scores are known to be between 0 and 1
	needs bool                                  // needs an expected output
	whole bool                                  // the whole output must equal the expected output
	fits  func(map[string]*schema.Schema) error // checks the scorer against the known schemas of output, input and node
	of    string                                // path of the scored value in the output
	node  string                                // type of the scored node; "" for the output
}

// Func returns a scorer that calls a Go function. The function is called only for cases with an answer. If it returns an error,
// the verdict is "error". The options are the same as for stone.Func: use stone.Version and stone.Reusable for an expensive
// scorer.
func Func(name string, fn func(context.Context, Case) (Score, error), options ...stone.LeafOption) Scorer {
	return scoring(name, "", fn, options...)
}

// scoring is like Func, but scores the given node. If node is "", the output is scored.
func scoring(name, node string, fn func(context.Context, Case) (Score, error), options ...stone.LeafOption) Scorer {
	return Scorer{name: name, leaf: func(set *dataset) stone.Ashlar {
		return stone.New(name, scored, func(ctx context.Context, d dag.DAG) (Score, error) {
			c, settled, err := set.caseOf(d, node)
			if err != nil || settled != nil {
				return *settled, err
			}
			s, err := fn(ctx, c)
			if err != nil {
				if ctx.Err() != nil || ends(err) {
					return s, err
				}
				return Score{Verdict: errored, Reason: err.Error()}, nil
			}
			return s.judged(), nil
		}, append([]stone.LeafOption{stone.Queries(answered)}, options...)...)
	}}
}

func (s Score) judged() Score {
	if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
		return Score{Verdict: errored, Reason: "the score is not a number"}
	}
	if s.Verdict == "" {
		s.Verdict = wrong
		if s.Value >= 1 {
			s.Verdict = right
		}
	}
	return s
}

// caseOf returns the case of a lane. If the case has no answer, it returns the score instead, unless the case ended because a
// recorded answer was missing and the node to be scored had already been created.
func (set *dataset) caseOf(d dag.DAG, node string) (c Case, settled *Score, err error) {
	n, err := d.Nearest(answered.Name())
	if err != nil {
		return c, &Score{}, err
	}
	a, err := answered.Of(n)
	if err != nil {
		return c, &Score{}, err
	}
	if f := a.Failure; f != nil && !(f.lacks() && a.Nodes[node] != nil) {
		settled = &Score{Verdict: noAnswer, Reason: f.Kind + ": " + f.Reason}
		if f.Error {
			settled.Verdict = errored
		}
		return c, settled, nil
	}
	r := set.rows[set.byID[a.Case]]
	c = Case{ID: a.Case, Trial: a.Trial, Output: a.Output, Nodes: a.Nodes}
	if c.Input, c.Expected, err = set.content(r); err != nil {
		return c, &Score{}, err
	}
	cost, err := costOf(n)
	c.Usage = cost.Usage
	return c, nil, err
}

// costOf returns the cost that is stored in a node's meta.
func costOf(n *dag.Node) (p paid, err error) {
	if text := n.Meta()[metaKey]; text != "" {
		err = json.Unmarshal([]byte(text), &p)
	}
	return p, err
}
