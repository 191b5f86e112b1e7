package eval

import (
	"context"
	"encoding/json"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/prompts"
	"github.com/stonelayer/stone/internal/text"
)

// chosen is the type of a node that lists the ids of the cases that a version of the prompts must answer.
var chosen = dag.NewType[[]string]("eval/chosen")

// attempted is the type of a node that lists the attempts at these cases.
var attempted = dag.NewType[[]attempt]("eval/attempts")

// An attempt is an answer to a case, with its score.
type attempt struct {
	Case    string  `json:"case"`
	Value   float64 `json:"value"`
	Verdict string  `json:"verdict"`
	Answer  string  `json:"answer,omitempty"` // answer as JSON, or the reason why there is none; shortened
	Why     string  `json:"why,omitempty"`    // reason for the score
}

// maxSaid is the maximum length, in characters, of each case part shown for a revision.
const maxSaid = 2000

// collectAttempts returns a node with the attempts of all lanes. The node's meta contains the cost.
func collectAttempts(d dag.DAG) (*dag.Node, error) {
	var all []attempt
	var spent paid
	for n := range d.Nodes() {
		if n.Type() == visited.Name() {
			v, err := visited.Of(n)
			if err != nil {
				return nil, err
			}
			all = append(all, attempt{Case: v.Case})
			continue
		}
		if len(all) == 0 {
			continue // this is the origin of the fan-out
		}
		if err := all[len(all)-1].take(n); err != nil {
			return nil, err
		}
		p, err := costOf(n)
		if err != nil {
			return nil, err
		}
		spent.USD += p.USD
	}
	meta, err := json.Marshal(spent)
	if err != nil {
		return nil, err
	}
	return dag.NewNode(dag.Spec{Type: attempted.Name(), Content: all, Parents: d.Next(), Meta: map[string]string{metaKey: string(meta)}})
}

func (a *attempt) take(n *dag.Node) error {
	switch n.Type() {
	case answered.Name():
		got, err := answered.Of(n)
		if err != nil {
			return err
		}
		a.Answer = text.Cut(string(got.Output), maxSaid)
		if f := got.Failure; f != nil {
			a.Answer = text.Cut("none: "+f.Kind+": "+f.Reason, maxSaid)
		}
	case scored.Name():
		s, err := scored.Of(n)
		if err != nil {
			return err
		}
		a.Value, a.Verdict, a.Why = s.Value, s.Verdict, text.Cut(s.Reason, maxSaid)
	}
	return nil
}

// answers answers the cases with a version of the prompts, and returns the attempts and their cost in USD.
func (s *split) answers(ctx context.Context, d dag.DAG, texts map[string]string, ids []string) (map[string]attempt, float64, error) {
	start, err := chosen.Append(d, ids)
	if err == nil {
		start, err = prompts.Type.Append(start, texts)
	}
	if err != nil {
		return nil, 0, err
	}
	n, err := child(ctx, s.cases, start, attempted)
	if err != nil {
		return nil, 0, err
	}
	all, err := attempted.Of(n)
	if err != nil {
		return nil, 0, err
	}
	spent, err := costOf(n)
	by := map[string]attempt{}
	for _, a := range all {
		by[a.Case] = a
	}
	return by, spent.USD, err
}

// child runs a child of the leaf and returns the node that the child has produced.
func child(ctx context.Context, p stone.Ashlar, d dag.DAG, made dag.AnyType) (*dag.Node, error) {
	out := stone.In(ctx).RunChild(p, d).Within(nil)
	if out.InFlight() {
		return nil, ending(out.Cause())
	}
	return out.Nearest(made.Name())
}
