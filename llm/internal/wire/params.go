package wire

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone/llm"
)

// ParamRules puts each setting of llm.Params into the body of a request. A setting without a rule is rejected.
type ParamRules map[string]func(body map[string]any, value any) error

// Put returns a rule that sets the field at the path. Objects along the path, which may belong to Extra, are copied.
func Put(path ...string) func(map[string]any, any) error {
	return func(body map[string]any, value any) error {
		for _, name := range path[:len(path)-1] {
			inner := map[string]any{}
			if own, ok := body[name].(map[string]any); ok {
				maps.Copy(inner, own)
			} else if body[name] != nil {
				return fmt.Errorf("%s in Extra is a %T: use a map[string]any", name, body[name])
			}
			body[name], body = inner, inner
		}
		body[path[len(path)-1]] = value
		return nil
	}
}

// Choice returns the rule for tool_choice. The map modes contains the provider's values for auto, none and required, and tool
// returns its value for a named tool.
func Choice(put func(map[string]any, any) error, modes map[string]any, tool func(name string) any) func(map[string]any, any) error {
	return func(body map[string]any, value any) error {
		name := value.(string)
		if mode, ok := modes[name]; ok {
			return put(body, mode)
		}
		return put(body, tool(name))
	}
}

// rules returns the rules for a model.
func (m *Model) rules(model string) ParamRules {
	if m.setup.ParamsOf != nil {
		return m.setup.ParamsOf(model)
	}
	return m.setup.Params
}

// CheckParams returns an error for settings that the provider does not support for the model.
func (m *Model) CheckParams(p llm.Params) error { return m.checkParams(p, m.rules(m.setup.Model)) }

func (m *Model) checkParams(p llm.Params, rules ParamRules) error {
	if err := p.Check(); err != nil {
		return err
	}
	for name := range p.All() {
		if rules[name] == nil {
			return fmt.Errorf("the protocol has no setting %s: leave it out, set a field of the vendor in Extra, or use one of %s", name, strings.Join(slices.Sorted(maps.Keys(rules)), ", "))
		}
	}
	return nil
}

// SetParams adds the settings of a request to its body, which already contains the fields of Extra. In a request without tools,
// tool settings are left out.
func (m *Model) SetParams(body map[string]any, model string, req *llm.Request) error {
	rules := m.rules(model)
	if err := m.checkParams(req.Params, rules); err != nil {
		return err
	}
	for name, value := range req.Params.All() {
		if len(req.Tools) == 0 && (name == "tool_choice" || name == "parallel_tools") {
			if name == "tool_choice" && value != "auto" && value != "none" {
				return fmt.Errorf("tool_choice is %q, but the request offers no tools", value)
			}
			continue
		}
		if err := rules[name](body, value); err != nil {
			return err
		}
	}
	return nil
}
