package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/call"
)

// Calls returns the slots of the plan's calls outside the bodies of other nodes. These calls run at most once.
func (p *Plan) Calls() (slots []string) {
	for _, n := range p.nodes {
		if n.op == "call" && n.as != "" {
			slots = append(slots, n.as)
		}
	}
	return slots
}

// WithCall returns a copy of the plan in which change has been applied to the call that defines the slot, which must be one of
// Calls. It returns an error if change does, if there is no such call, if the call takes its capabilities from slots, or if the
// plan has faults.
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
