package agent

import (
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/prompts"
)

// Adjustable returns a constant prompt, like Say, that eval.Improving may revise. The prompt must be the System or the User
// itself, not a part of it. The name must be unique within a pipeline.
func Adjustable(name, text string) dag.Reader[string] { return adjustable{name, text} }

type adjustable struct{ name, text string }

// Queries implements dag.Reader.
func (a adjustable) Queries() []dag.Query { return prompts.Reader.Queries() }

// From implements dag.Reader.
func (a adjustable) From(d dag.DAG) (string, error) {
	texts, err := prompts.In(d)
	if text, ok := texts[a.name]; ok {
		return text, nil
	}
	return a.text, err
}

// prompts returns a map from the names of the agent's adjustable prompts to their texts.
func (a *agent) prompts() map[string]string {
	texts := map[string]string{}
	for _, p := range []dag.Reader[string]{a.cfg.System, a.cfg.User} {
		if p, ok := p.(adjustable); ok {
			texts[p.name] = p.text
		}
	}
	return texts
}
