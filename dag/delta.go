package dag

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A Delta lists the nodes that one DAG has and another lacks. It can be encoded as JSON and applied to any DAG. See [DAG.Delta].
type Delta []deltaNode

// deltaNode is a node of a delta. Its parents are numbers, so the delta can be applied to another DAG: n means the n-th node of
// the delta, and -1-n the n-th head that an appended node would follow there. An empty list means all these heads.
type deltaNode struct {
	Type    string            `json:"type"`
	Content json.RawMessage   `json:"content"`
	Parents []int             `json:"parents,omitempty"`
	Meta    map[string]string `json:"meta,omitempty"`
	Time    time.Time         `json:"time"`
}

// Delta returns the nodes of the given DAGs that d lacks. It returns an error if one of the DAGs does not extend d, or if one of
// the nodes has a parent that is neither in the delta nor a head of d.
func (d DAG) Delta(lanes ...DAG) (Delta, error) {
	before := d.Next()
	at := make(map[ID]int, len(before))
	for i, n := range before {
		at[n.ID()] = -1 - i
	}
	var out Delta
	for i, lane := range lanes {
		if !lane.Extends(d) {
			return nil, fmt.Errorf("delta: lane %d does not extend the DAG: append to the DAG that was given", i)
		}
		for _, n := range lane.Within(nil).Beyond(d) {
			k := deltaNode{Type: n.Type(), Content: n.Content(), Meta: n.Meta(), Time: n.Time()}
			if parents := n.Parents(); !slices.Equal(parents, before) {
				for _, p := range parents {
					place, ok := at[p.ID()]
					if !ok {
						return nil, fmt.Errorf("%s cannot be kept: its parent %s is neither kept nor a node that the lanes follow", n, p)
					}
					k.Parents = append(k.Parents, place)
				}
			}
			at[n.ID()] = len(out)
			out = append(out, k)
		}
	}
	return out, nil
}

// Apply returns d with the nodes of the delta added.
func (x Delta) Apply(d DAG) (DAG, error) {
	before := d.Next()
	nodes := make([]*Node, len(x))
	for i, k := range x {
		spec := Spec{Type: k.Type, Content: k.Content, Parents: before, Meta: k.Meta, Time: k.Time}
		if len(k.Parents) > 0 {
			spec.Parents = make([]*Node, len(k.Parents))
		}
		for j, place := range k.Parents {
			switch {
			case place >= i || place < -len(before):
				return d, fmt.Errorf("node %d has the parent %d: want an earlier one", i, place)
			case place >= 0:
				spec.Parents[j] = nodes[place]
			default:
				spec.Parents[j] = before[-1-place]
			}
		}
		var err error
		if nodes[i], err = NewNode(spec); err != nil {
			return d, err
		}
	}
	return Extend(d, nodes)
}
