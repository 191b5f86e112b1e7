package eval

import (
	"encoding/json"
	"fmt"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/text"
)

// outcomes holds the results of all trials in a group.
type outcomes struct {
	Rows []outcome `json:"rows"`
}

// An outcome is the result of one trial. Its field names are short, because there may be hundreds of thousands of outcomes.
type outcome struct {
	Case     string    `json:"c"`
	Trial    int       `json:"t"`
	Values   []float64 `json:"v"` // score by scorer
	Verdicts string    `json:"k"` // one letter of verdictLetters for each scorer
	Failure  string    `json:"f,omitempty"`
	Reason   string    `json:"why,omitempty"` // reason for the failure or for a scorer's error
}

const verdictLetters = "rwne"

var verdicts = []string{right, wrong, noAnswer, errored}

// letter returns the letter that represents a verdict.
func letter(verdict string) (byte, error) {
	for i, v := range verdicts {
		if v == verdict {
			return verdictLetters[i], nil
		}
	}
	return 0, fmt.Errorf("unknown verdict %q: want right, wrong, no answer or error", verdict)
}

// cost is the cost of one trial. It is stored in the meta of a group's node, in the order of the outcomes.
type cost struct {
	USD     float64  `json:"usd,omitempty"`    // cost of the answer in USD
	Judges  float64  `json:"judges,omitempty"` // cost of the judges in USD
	Tokens  int      `json:"tokens,omitempty"` // tokens of the answer
	Seconds float64  `json:"s,omitempty"`      // time until the answer
	From    string   `json:"from,omitempty"`   // run from which the answer was reused
	Asked   []string `json:"asked,omitempty"`  // ids of the capabilities that were called
	Call    *tried   `json:"call,omitempty"`   // result of the tuned call

	Past past.Counts `json:"past,omitzero"`
}

const maxReason = 200

// collect returns the node with the outcomes of a group, which it reads from the group's lanes.
func collect(d dag.DAG) (*dag.Node, error) {
	found, costs, err := outcomesOf(d)
	if err != nil {
		return nil, err
	}
	meta, err := json.Marshal(costs)
	if err != nil {
		return nil, err
	}
	return dag.NewNode(dag.Spec{Type: results.Name(), Content: found, Parents: d.Next(), Meta: map[string]string{metaKey: string(meta)}})
}

// outcomesOf reads the lanes of a group. Each lane starts with its visit, followed by the answer, the scores and the nodes of
// judges.
func outcomesOf(d dag.DAG) (o outcomes, costs []cost, err error) {
	for n := range d.Nodes() {
		switch n.Type() {
		case visited.Name():
			v, err := visited.Of(n)
			if err != nil {
				return o, nil, err
			}
			o.Rows = append(o.Rows, outcome{Case: v.Case, Trial: v.Trial})
			costs = append(costs, cost{})
			continue
		}
		if len(o.Rows) == 0 {
			continue // this is the origin of the fan-out
		}
		row, spent := &o.Rows[len(o.Rows)-1], &costs[len(costs)-1]
		switch n.Type() {
		case answered.Name():
			err = row.answer(n, spent)
		case scored.Name():
			err = row.score(n)
		default:
			var p paid
			p, err = costOf(n)
			spent.Judges += p.USD
		}
		if err != nil {
			return o, nil, err
		}
	}
	return o, costs, nil
}

func (o *outcome) answer(n *dag.Node, spent *cost) error {
	var head struct{ Failure *failure } // decode only the failure, not the nodes
	if err := json.Unmarshal([]byte(n.JSON()), &head); err != nil {
		return err
	}
	if f := head.Failure; f != nil {
		o.Failure, o.Reason = f.Kind, text.Cut(f.Reason, maxReason)
	}
	p, err := costOf(n)
	spent.USD, spent.Tokens, spent.Seconds, spent.From = p.USD, p.Tokens(), p.Seconds, n.Meta()[terms.From]
	spent.Asked, spent.Call, spent.Past = p.Asked, p.Call, p.Past
	return err
}

func (o *outcome) score(n *dag.Node) error {
	s, err := scored.Of(n)
	if err != nil {
		return err
	}
	k, err := letter(s.Verdict)
	o.Values, o.Verdicts = append(o.Values, s.Value), o.Verdicts+string(k)
	if k == 'e' && o.Reason == "" {
		o.Reason = text.Cut(s.Reason, maxReason)
	}
	return err
}
