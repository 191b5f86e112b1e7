package agent

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// ConfigOf returns the model and the configuration of an agent, with defaults filled in. It returns false if the ashlar is not an
// agent.
func ConfigOf(a stone.Ashlar) (llm.Model, Config, bool) {
	of, ok := a.Detail().Value.(*agent)
	if !ok {
		return nil, Config{}, false
	}
	cfg := of.cfg
	cfg.Use, cfg.Options = slices.Clone(cfg.Use), slices.Clone(cfg.Options)
	cfg.MaxHealing = new(of.maxHealing)
	return of.model, cfg, true
}

// Model returns the model that the agent calls.
func (a *agent) Model() llm.Model { return a.model }

// facts returns an iterator over the facts that describe the agent to people; see tree.Facts. The leaf reports the agent's name,
// types, effects and judges.
func (a *agent) facts() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		var info llm.Info
		if m, ok := a.model.(llm.Informer); ok {
			info = m.Info()
		}
		model := cmp.Or(a.cfg.Model, info.Model, "unknown")
		if info.Provider != "" {
			model += " (" + info.Provider + ")"
		}
		facts := [][2]string{{"model", model}}
		for _, p := range []struct {
			name string
			text dag.Reader[string]
		}{{"system", a.cfg.System}, {"prompt", a.cfg.User}} {
			if p.text != nil {
				facts = append(facts, [2]string{p.name, shownPrompt(p.text)})
			}
		}
		if a.cfg.Conversation != nil {
			facts = append(facts, [2]string{"conversation", madeOf(a.cfg.Conversation)})
		}
		if a.cfg.Media != nil {
			facts = append(facts, [2]string{"media", madeOf(a.cfg.Media)})
		}
		for _, m := range a.cfg.Use {
			kind, name, effects := "middleware", m.Name, m.Effects
			if m.Tool != nil {
				kind, name, effects = "tool", m.Tool.Name, effectsOf([]Middleware{m})
			}
			if len(effects) > 0 {
				name += " (" + strings.Join(effects, ", ") + ")"
			}
			facts = append(facts, [2]string{kind, name})
		}
		if draft := a.draft.typ.Name(); draft != a.out.Name() {
			facts = append(facts, [2]string{"draft", draft})
		}
		facts = append(facts,
			[2]string{"max-turns", strconv.Itoa(a.cfg.MaxTurns)},
			[2]string{"max-calls", strconv.Itoa(a.cfg.MaxCalls)},
			[2]string{"max-tokens", cmp.Or(strings.TrimPrefix(strconv.Itoa(a.cfg.MaxTokens), "0"), "of the model")})
		if !a.cfg.Adversary.IsZero() {
			facts = append(facts, [2]string{"max-healing", strconv.Itoa(a.maxHealing)})
		}
		for _, f := range facts {
			if !yield(f[0], f[1]) {
				return
			}
		}
	}
}

// shownPrompt returns the first line of a constant prompt, or the types that a prompt reads.
func shownPrompt(r dag.Reader[string]) string {
	if reads := madeOf(r); reads != "" {
		return reads
	}
	text, err := prompt(r, dag.DAG{})
	if err != nil {
		return err.Error()
	}
	first, rest, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more {
		first += fmt.Sprintf(" … (%d lines)", strings.Count(rest, "\n")+2)
	}
	return first
}

// madeOf returns a description of the types that r reads.
func madeOf(r dag.Querier) string {
	var reads []string
	for _, q := range r.Queries() {
		reads = append(reads, strings.ReplaceAll(q.String(), `"`, ""))
	}
	if reads == nil {
		return ""
	}
	return "made of " + strings.Join(reads, ", ")
}
