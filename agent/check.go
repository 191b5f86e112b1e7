package agent

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// check returns the faults of the configuration. Validate calls it.
func (a *agent) check() []stone.Finding {
	var out findings
	switch m := a.model.(type) {
	case nil:
		out.add("nil-model", "the model is nil: pass one to New")
	case llm.Checker:
		if err := m.Check(); err != nil {
			out.add("bad-model", "%v", err)
		}
	}
	if err := llm.CheckParams(a.model, a.cfg.Params); err != nil {
		out.add("bad-option", "Params: %v", err)
	}
	if err := a.refused(func(m *llm.Media) error { return llm.CheckMedia(a.model, llm.RoleUser, m) }); err != nil {
		out.add("bad-option", "Media: %v: use a model whose protocol accepts it", err)
	}
	if a.cfg.System == nil && a.cfg.User == nil && a.cfg.Media == nil && a.cfg.Conversation == nil {
		out.warn("no-prompt", "the model gets no prompt: set System, User or Conversation")
	} else if a.cfg.User == nil && a.cfg.Media == nil && a.cfg.Conversation == nil {
		out.warn("no-prompt", "the model gets only the system text, and \"Continue.\" as its first message: set User")
	}
	if a.cfg.MaxTurns < 0 || a.cfg.MaxCalls < 0 || a.cfg.MaxTokens < 0 || a.maxHealing < 0 {
		out.add("bad-option", "MaxTurns is %d, MaxCalls %d, MaxTokens %d, MaxHealing %d: none may be negative", a.cfg.MaxTurns, a.cfg.MaxCalls, a.cfg.MaxTokens, a.maxHealing)
	}
	a.checkChoice(&out)
	if a.cfg.Adversary.IsZero() && (!a.cfg.Healer.IsZero() || a.cfg.MaxHealing != nil) {
		out.add("missing-adversary", "Healer or MaxHealing is set, but no adversary rejects drafts: set Adversary")
	}
	a.checkType(&out)
	a.checkUse(&out)
	return out
}

// checkChoice reports a tool choice that no tool can meet, or with which the agent can never end.
func (a *agent) checkChoice(out *findings) {
	choice := a.cfg.Params.ToolChoice
	switch {
	case choice == "" || choice == "auto" || choice == "none":
	case len(a.offered) == 0 && !slices.ContainsFunc(a.cfg.Use, func(m Middleware) bool { return m.Wrap != nil }):
		out.add("bad-option", "Params.ToolChoice is %q, but no middleware offers a tool: remove it, or add one to Use", choice)
	case a.cfg.MaxTurns == 1:
		out.warn("never-ends", "Params.ToolChoice %q forces a tool call in the first turn, but MaxTurns is 1: raise MaxTurns, unless a tool ends the agent (see Answer)", choice)
	}
}

func (a *agent) checkType(out *findings) {
	if a.cfg.Finalize.result != nil {
		switch {
		case a.cfg.Finalize.run == nil:
			out.add("nil-body", "Finalize has a nil function: pass one, or leave Finalize out")
		case a.cfg.Finalize.result != a.result.goType:
			out.add("bad-type", "Finalize returns a %s, but the agent produces a %s: make them the same", a.cfg.Finalize.result, a.result.goType)
		case a.draft.typ.Err() != nil:
			out.add("bad-type", "the draft of Finalize: %v", a.draft.typ.Err())
		case a.draft.typ.Name() == a.out.Name() && a.draft.goType != a.result.goType:
			out.add("schema-mismatch", "the draft of Finalize and the result are %s and %s, but both have the name %q: rename one", a.draft.goType, a.result.goType, a.out.Name())
		}
	}
	s := a.out.Schema()
	switch {
	case a.result.free || a.out.Err() != nil: // the leaf itself reports an Err
	case s == nil || !isObject(s):
		out.add("bad-type", "the type %q is not a JSON object: produce a struct, since the conversation is kept beside its fields", a.out.Name())
	case a.result.goType.Kind() == reflect.Map:
		out.add("bad-type", "the type %q is a map: produce a struct, since readers of a map would find the conversation among its entries", a.out.Name())
	case slices.Contains(s.Properties(), conversationField):
		out.add("reserved-field", "the type %q has a field %q, where the conversation is kept: rename it", a.out.Name(), conversationField)
	}
}

func (a *agent) checkUse(out *findings) {
	names, tools := map[string]bool{}, map[string]bool{}
	for i, m := range a.cfg.Use {
		switch {
		case m.Name == "":
			out.add("no-name", "middleware number %d has no name: set Name", i+1)
		case names[m.Name]:
			out.add("duplicate-middleware", "two middlewares have the name %q: rename or remove one", m.Name)
		}
		names[m.Name] = true
		if m.Wrap == nil && m.Tool == nil {
			out.add("nil-body", "the middleware %q does nothing: set Wrap or Tool", m.Name)
		}
		if m.Tool == nil {
			continue
		}
		if tools[m.Tool.Name] {
			out.add("duplicate-tool", "two middlewares offer a tool %q: rename or remove one", m.Tool.Name)
		}
		tools[m.Tool.Name] = true
		a.checkTool(m.Tool, out)
	}
}

func (a *agent) checkTool(t *Tool, out *findings) {
	if t.Err != nil {
		out.add("bad-tool", "%v", t.Err)
		return
	}
	if t.Left != nil {
		out.warn("tool-left-out", "%v", t.Left)
		return
	}
	if structured.Name(t.Name) != t.Name || t.Name == "" {
		out.add("bad-tool", "providers refuse the tool name %q: want 1 to 64 of a-z, A-Z, 0-9, _ and -", t.Name)
	}
	if t.Name == readName {
		out.add("bad-tool", "the tool name %q is reserved for the tool that reads long results: rename the tool", t.Name)
	}
	if strings.TrimSpace(t.Description) == "" && t.Provider == nil {
		out.warn("no-description", "the tool %q has no description: add one, so that the model knows when to call it", t.Name)
	}
	if t.Run == nil && t.Provider == nil {
		out.add("bad-tool", "the tool %q has no Run function: set one", t.Name)
	}
	if t.Provider != nil && !a.hosts(t) {
		out.add("bad-tool", "the tool %q is defined only for another provider (%s): use a model of that protocol, or add an object for the model's protocol",
			t.Name, strings.Join(slices.Sorted(maps.Keys(t.Provider)), ", "))
	}
	if len(t.Schema) == 0 {
		return
	}
	switch _, unchecked, err := schema.ParseForeign(t.Schema); {
	case err != nil:
		out.add("bad-tool", "the schema of the tool %q: %v", t.Name, err)
	case len(unchecked) > 0:
		out.warn("unchecked-schema", "the tool %q: these keywords of its schema cannot be read, so calls are not checked against them: %s",
			t.Name, strings.Join(unchecked[:min(len(unchecked), 5)], ", "))
	}
}

// protocols maps the names that hosted tools use to the names of provider protocols.
var protocols = map[string][]string{"openai": {"openai", "responses"}, "anthropic": {"anthropic"}, "gemini": {"gemini"}}

// hosts reports whether the model can use a tool hosted by its provider, or may do so because its provider is unknown.
func (a *agent) hosts(t *Tool) bool {
	m, ok := a.model.(llm.Informer)
	if !ok {
		return true
	}
	known := protocols[m.Info().Provider]
	return known == nil || slices.ContainsFunc(known, func(p string) bool { return t.Provider[p] != nil })
}

type findings []stone.Finding

func (f *findings) add(typ string, format string, args ...any) {
	*f = append(*f, stone.Finding{Type: typ, Message: fmt.Sprintf(format, args...)})
}

func (f *findings) warn(typ string, format string, args ...any) {
	f.add(typ, format, args...)
	(*f)[len(*f)-1].Warning = true
}
