package call

import (
	"fmt"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
)

// printed is what can change the answer of a call and is not seen in its name and
// its queries. Budget and candidates are not in it: an answer that was paid for
// stands when more may be spent, or when others could be asked. The versions of those that
// may be asked are: a new version is another capability.
type printed struct {
	Intent   string   `json:"intent"`
	Cap      string   `json:"cap"`
	Tool     string   `json:"tool"`
	Requires Requires `json:"requires"`
	Dispatch Dispatch `json:"dispatch"`
	Done     Done     `json:"done"` // with what the policy adds
	Effects  []string `json:"effects"`
	ScoreMin float64  `json:"score-min"`
	Judge    string   `json:"judge"`

	Versions map[string]string `json:"versions,omitempty"` // of capabilities that have one
}

// Fingerprint is a part of the fingerprint of the leaf.
func (c *caller) Fingerprint() []byte {
	s := &c.spec
	p := printed{Intent: s.Intent, Cap: s.Cap, Tool: s.Tool, Requires: s.Requires, Dispatch: s.Dispatch, Done: s.Done, Effects: s.Effects}
	if s.Applicator != nil {
		e := s.Applicator.Policy.resolve(s)
		p.Done, p.ScoreMin, p.Judge = e.done, e.scoreMin, fmt.Sprintf("%+v", e.judge)
		p.Versions = s.Applicator.versions(s, &e)
	}
	data, err := canon.Append(nil, p)
	if err != nil { // a number that JSON has not, which Check reports
		return fmt.Appendf(nil, "%+v", p)
	}
	return data
}

// Render returns the parts of the request that are made of the DAG. They are a
// part of the keys of the leaf.
func (c *caller) Render(d dag.DAG) ([]byte, error) {
	var parts []JSON
	for _, from := range []dag.Reader[any]{c.spec.Input, c.spec.Context, c.spec.Constraints} {
		part, _, err := readPart(from, d)
		if err != nil {
			return nil, err
		}
		if part == nil {
			part = JSON("null")
		}
		parts = append(parts, part)
	}
	return canon.Append(nil, parts)
}

// versions returns the versions of the capabilities that may answer, repair or judge, where
// they have one.
func (app *Applicator) versions(s *Spec, e *effective) map[string]string {
	versions := map[string]string{}
	add := func(e *entry) {
		if e != nil && e.Version != "" {
			versions[e.ID] = e.Version
		}
	}
	for _, c := range app.candidates(s, nil) {
		if c.reason == "" {
			add(c.entry)
		}
	}
	if fix := s.Dispatch.Repair; fix != nil {
		add(app.Registry.entry(fix.Cap))
	}
	add(app.judge(&e.judge))
	return versions
}
