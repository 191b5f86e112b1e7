package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/call"
)

// Calls returns the slots of a plan's calls that run at most once: slots outside the
// body of another node.
func (p *Plan) Calls() (slots []string) {
	for _, n := range p.nodes {
		if n.op == "call" && n.as != "" {
			slots = append(slots, n.as)
		}
	}
	return slots
}

// WithCall returns a copy of the plan in which change has been applied to one of its Calls. The error comes from change or says
// that there is no such call.
func (p *Plan) WithCall(slot string, change func(*call.Spec) error) (*Plan, error) {
	i := slices.IndexFunc(p.nodes, func(n *node) bool { return n.op == "call" && n.as == slot })
	switch {
	case p.text == nil:
		return nil, p.faults.Err()
	case i < 0:
		return nil, fmt.Errorf("the plan has no call with :as :%s outside bodies: it has %s", slot, strings.Join(p.Calls(), ", "))
	case p.nodes[i].pin != nil || p.nodes[i].candidates != nil:
		return nil, fmt.Errorf("the call :%s takes its capabilities from slots, so it cannot be tuned", slot)
	}
	n := *p.nodes[i]
	if err := change(&n.spec); err != nil {
		return nil, fmt.Errorf("the call :%s: %w", slot, err)
	}
	nodes := slices.Clone(p.nodes)
	nodes[i] = &n
	text, err := (&Plan{id: p.id, nodes: nodes}).print(false, len(p.text))
	if err != nil {
		return nil, err
	}
	return Read(text)
}
