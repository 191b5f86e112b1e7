package llm

import (
	"cmp"
	"fmt"
	"iter"
)

// Params are settings of a request that most providers support. If a field is not set, the provider's default applies. If the
// provider does not support a setting, the request fails with an error that names the setting. Vendor-specific settings belong in
// Extra of the vendor's Config.
type Params struct {
	Temperature *float64 `json:"temperature,omitempty"` // at least 0
	TopP        *float64 `json:"top_p,omitempty"`       // in (0, 1]
	// Stop contains the texts before which the answer ends.
	Stop []string `json:"stop,omitempty"`
	Seed *int64   `json:"seed,omitempty"`
	// ToolChoice is "auto", "none", "required" or the name of a tool that must be called. In an agent, a forced choice applies
	// until a tool has been called. In a request without tools, "required" and names are rejected.
	ToolChoice string `json:"tool_choice,omitempty"`
	// ParallelTools permits several tool calls in one answer.
	ParallelTools *bool `json:"parallel_tools,omitempty"`
	// Effort is the amount of thinking, such as "low", "medium" or "high".
	Effort      string `json:"effort,omitempty"`
	ServiceTier string `json:"service_tier,omitempty"`
	// CacheTTL is how long a cached prompt is kept, in the provider's notation, such as "1h" (Anthropic) or "24h" (OpenAI). Use a
	// longer time than the default if a person answers between two turns.
	CacheTTL string            `json:"cache_ttl,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// All yields the JSON name and the value of each setting that is set.
func (p *Params) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		_ = (p.Temperature == nil || yield("temperature", *p.Temperature)) &&
			(p.TopP == nil || yield("top_p", *p.TopP)) &&
			(len(p.Stop) == 0 || yield("stop", p.Stop)) &&
			(p.Seed == nil || yield("seed", *p.Seed)) &&
			(p.ToolChoice == "" || yield("tool_choice", p.ToolChoice)) &&
			(p.ParallelTools == nil || yield("parallel_tools", *p.ParallelTools)) &&
			(p.Effort == "" || yield("effort", p.Effort)) &&
			(p.ServiceTier == "" || yield("service_tier", p.ServiceTier)) &&
			(p.CacheTTL == "" || yield("cache_ttl", p.CacheTTL)) &&
			(len(p.Metadata) == 0 || yield("metadata", p.Metadata))
	}
}

// Or returns p, with each unset setting replaced by the value in q.
func (p Params) Or(q Params) Params {
	p.Temperature, p.TopP, p.Seed = cmp.Or(p.Temperature, q.Temperature), cmp.Or(p.TopP, q.TopP), cmp.Or(p.Seed, q.Seed)
	p.ToolChoice, p.ParallelTools = cmp.Or(p.ToolChoice, q.ToolChoice), cmp.Or(p.ParallelTools, q.ParallelTools)
	p.Effort, p.ServiceTier, p.CacheTTL = cmp.Or(p.Effort, q.Effort), cmp.Or(p.ServiceTier, q.ServiceTier), cmp.Or(p.CacheTTL, q.CacheTTL)
	if p.Stop == nil {
		p.Stop = q.Stop
	}
	if p.Metadata == nil {
		p.Metadata = q.Metadata
	}
	return p
}

// Check returns an error if the temperature or top_p is out of range.
func (p *Params) Check() error {
	if t := p.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		return fmt.Errorf("temperature is %v: want 0 to 2", *t)
	}
	if t := p.TopP; t != nil && !(*t > 0 && *t <= 1) {
		return fmt.Errorf("top_p is %v: want more than 0 and at most 1", *t)
	}
	return nil
}

// CheckParams returns an error if m is known not to support a setting in p, or if p.Check returns one.
func CheckParams(m Model, p Params) error {
	if c, ok := m.(interface{ CheckParams(p Params) error }); ok {
		return c.CheckParams(p)
	}
	return p.Check()
}
