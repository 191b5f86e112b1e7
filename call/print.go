package call

import (
	"fmt"
	"maps"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/terms"
)

// printed holds everything that can change a call's answer, apart from the call's name and queries. It excludes the budget and
// the candidates, because an answer that was paid for stays valid with a larger budget or other candidates. It includes the
// candidates' versions, because a new version counts as another capability.
type printed struct {
	Intent   string   `json:"intent"`
	Cap      string   `json:"cap"`
	Tool     string   `json:"tool"`
	Requires Requires `json:"requires"`
	Dispatch Dispatch `json:"dispatch"`
	Done     Done     `json:"done"` // including the policy's
	Effects  []string `json:"effects"`
	Admit    []Done   `json:"admit,omitempty"`
	ScoreMin float64  `json:"score-min"`
	Judge    string   `json:"judge"`

	// The versions of those readers that have one.
	Input       string `json:"input,omitempty"`
	Context     string `json:"context,omitempty"`
	Constraints string `json:"constraints,omitempty"`
	CapFrom     string `json:"cap-from,omitempty"`

	Versions map[string]string `json:"versions,omitempty"` // the versions of the capabilities, by id
}

// fingerprint returns the call's part of its leaf's fingerprint.
func (c *caller) fingerprint() []byte {
	s := &c.spec
	p := printed{Intent: s.Intent, Cap: s.Cap, Tool: s.Tool, Requires: s.Requires, Dispatch: s.Dispatch, Done: s.Done, Effects: s.Effects,
		Input: terms.Version(s.Input), Context: terms.Version(s.Context), Constraints: terms.Version(s.Constraints), CapFrom: terms.Version(s.CapFrom)}
	if s.Applicator != nil {
		e := s.Applicator.Policy.resolve(s)
		if e.admit.any() {
			p.Admit = []Done{e.admit, e.host}
		}
		p.Done, p.ScoreMin, p.Judge = e.done, *e.done.ScoreMin, fmt.Sprintf("%+v", e.judge)
		p.Versions = s.Applicator.versions(s, &e)
	}
	data, err := canon.Append(nil, p)
	if err != nil { // a number that JSON cannot represent, which Check reports
		return fmt.Appendf(nil, "%+v", p)
	}
	return data
}

// prompts returns the adjustable prompts of the capabilities that may answer.
func (c *caller) prompts() map[string]string {
	texts := map[string]string{}
	if s := &c.spec; s.Applicator != nil && !s.open() {
		for _, candidate := range s.Applicator.candidates(s, nil) {
			if candidate.reason == "" && candidate.entry != nil {
				maps.Copy(texts, candidate.entry.Prompts)
			}
		}
	}
	return texts
}

// instructions returns the instructions of the capabilities that may answer.
func (c *caller) instructions() string {
	s := &c.spec
	if s.Applicator == nil || s.open() {
		return ""
	}
	var said []string
	for _, candidate := range s.Applicator.candidates(s, nil) {
		if e := candidate.entry; candidate.reason == "" && e != nil && e.Prompt != nil {
			said = append(said, e.ID+": "+e.Prompt(s.Intent))
		}
	}
	return strings.Join(said, "\n\n")
}

// renders returns the parts of the request that come from the DAG. They are part of the leaf's reuse key.
func (c *caller) renders(d dag.DAG) ([]byte, error) {
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
	if c.spec.open() && c.spec.Applicator != nil {
		asked, err := c.spec.asked(d)
		if err != nil {
			return nil, err
		}
		parts = append(parts, asked)
	}
	return canon.Append(nil, parts)
}

// asked returns, as JSON, the candidates read from d and their versions.
func (s *Spec) asked(d dag.DAG) (JSON, error) {
	chosen, _, err := s.chosen(d)
	if err != nil {
		return nil, err
	}
	return namedBy(s.Applicator.candidates(&chosen, nil))
}

// versions returns the versions of the capabilities that may answer, repair or judge, by
// id. It omits capabilities without a version.
func (app *Applicator) versions(s *Spec, e *effective) map[string]string {
	versions := map[string]string{}
	add := func(e *entry) {
		if e != nil && e.Version != "" {
			versions[e.ID] = e.Version
		}
	}
	for _, c := range app.candidates(s, nil) {
		if c.reason == "" && !s.open() { // the rendered parts already cover these
			add(c.entry)
		}
	}
	if fix := s.Dispatch.Repair; fix != nil {
		add(app.Registry.entry(fix.Cap))
	}
	add(app.judge(&e.judge))
	return versions
}
