package serve

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// give adds to a run's input the contents that clients cannot supply themselves: contents that a protocol provides and contents
// of the earlier run that the request names.
func (s *Server) give(ctx context.Context, t *task) error {
	var specs []dag.Spec
	if t.start.After != "" {
		var err error
		if specs, err = s.earlierRun(ctx, t.who, t.Pipeline, t.start.After); err != nil {
			return err
		}
	}
	for name, content := range t.start.Given {
		specs = append(specs, dag.Spec{Type: name, Content: content})
	}
	inputs := tree.Inputs(t.Ashlar)
	slices.SortStableFunc(specs, func(a, b dag.Spec) int { return strings.Compare(a.Type, b.Type) })
	for _, spec := range specs {
		i := slices.IndexFunc(inputs, func(in tree.Input) bool { return in.Type.Name() == spec.Type })
		if err := inputs[i].Type.Schema().Validate(ctx, spec.Content.(json.RawMessage)); err != nil {
			return invalid("the conversation so far: %v", err)
		}
		spec.Parents = t.run.Input.Next()
		n, err := dag.NewNode(spec)
		if err == nil {
			t.run.Input, err = t.run.Input.Append(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makes reports whether the pipeline produces nodes of this input's type itself, so that an earlier run can supply the input.
func (p *Pipeline) makes(in tree.Input) bool {
	return in.Inner && slices.ContainsFunc(p.Ashlar.ProducesAll(), func(t dag.AnyType) bool { return t.Name() == in.Type.Name() })
}

// earlierRun returns the contents that a run passes to the pipeline's next run: its agents' answers with their conversations, and
// the tool results that were kept. For a run without a result, it returns the agent's actions.
func (s *Server) earlierRun(ctx context.Context, who Principal, p *Pipeline, after string) (specs []dag.Spec, err error) {
	info, err := s.owned(ctx, who, after)
	inputs := slices.DeleteFunc(tree.Inputs(p.Ashlar), func(in tree.Input) bool { return !in.Inner })
	switch {
	case !who.may(Read):
		return nil, lacking(Read)
	case errors.Is(err, journal.ErrNoRun) || err == nil && info.Labels[tenantLabel] != who.Tenant:
		return nil, invalid("after: there is no run %q", after)
	case err != nil:
		return nil, err
	case info.Pipeline != p.Name:
		return nil, invalid("after: the run %q belongs to the pipeline %q", after, info.Pipeline)
	case !slices.ContainsFunc(inputs, p.makes):
		return nil, invalid("after: the pipeline %q continues no conversation: leave it out", p.Name)
	case !over(info.State) && info.State != journal.Refused:
		return nil, conflict("after: the run %q is %s: wait for it, or cancel it", after, info.State)
	}
	d, err := s.cfg.Journal.DAG(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	for _, in := range inputs {
		nodes, _ := d.All(in.Type.Name())
		if !in.Many && !p.makes(in) {
			continue // tools of the client, which may have changed
		}
		if !in.Many && len(nodes) > 1 {
			nodes = nodes[len(nodes)-1:]
		}
		for _, n := range nodes {
			specs = append(specs, dag.Spec{Type: n.Type(), Content: json.RawMessage(n.JSON()), Meta: n.Meta()})
		}
		if t := p.Ashlar.Result(); info.State == journal.Done || in.Many || t == nil || t.Name() != in.Type.Name() {
			continue
		}
		said, err := view.Broken(ctx, s.cfg.Journal, info)
		if err != nil {
			return nil, err
		}
		content, err := json.Marshal(map[string]any{"text": "", "conversation": said})
		if err != nil {
			return nil, err
		}
		if said != nil && in.Type.Schema().Validate(ctx, content) == nil {
			specs = append(specs[:len(specs)-len(nodes)], dag.Spec{Type: in.Type.Name(), Content: json.RawMessage(content)})
		}
	}
	return specs, nil
}

// bareOf returns a result without additional parts, such as an agent's conversation. The node in the run's record remains
// complete.
func bareOf(n *api.Node) *api.Node {
	var object map[string]json.RawMessage
	if n == nil || n.Meta[terms.Beside] == "" || json.Unmarshal(n.Content, &object) != nil {
		return n
	}
	out := *n
	out.Meta = maps.Clone(n.Meta)
	delete(out.Meta, terms.Beside)
	for name := range strings.SplitSeq(n.Meta[terms.Beside], ",") {
		delete(object, name)
	}
	out.Content, _ = json.Marshal(object) // it was decoded from JSON
	return &out
}
