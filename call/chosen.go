package call

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/suggest"
)

// This file handles calls that read their candidates from the run.

// open reports whether the candidates are read from the run, so that they are known only when the call is made. Until then, every
// registered capability is a candidate.
func (s *Spec) open() bool { return s.CapFrom != nil || s.CandidatesFrom != nil }

// chosen returns a copy of the spec with the candidates read from d, and whether a handle with a contract was read.
func (s *Spec) chosen(d dag.DAG) (_ Spec, contract bool, err error) {
	to := *s
	if s.CapFrom != nil {
		var h Handle
		if h, err = s.CapFrom.From(d); err == nil && h.Cap == "" {
			err = &Error{Type: reasons.InputInvalid, Message: "the capability id is empty: name a capability", Where: "cap/id"}
		}
		if err == nil {
			err = to.take(h)
		}
		contract = h.contract()
	} else if s.CandidatesFrom != nil {
		if to.Dispatch.Candidates, err = s.CandidatesFrom.From(d); err == nil && len(to.Dispatch.Candidates) == 0 {
			err = &Error{Type: reasons.InputInvalid, Message: "the list of capabilities to ask is empty: name at least one", Where: "dispatch.candidates"}
		}
	}
	to.CapFrom, to.CandidatesFrom = nil, nil
	return to, contract, err
}

// chosen returns a copy of the call with the candidates read from d. If the spec itself names the candidates, it returns the call
// unchanged.
func (c *caller) chosen(d dag.DAG) (*caller, error) {
	if !c.spec.open() {
		return c, nil
	}
	spec, contract, err := c.spec.chosen(d)
	to := &caller{name: c.name, produces: c.produces, spec: spec, turn: c.turn, hear: c.hear}
	if err == nil && contract {
		err = to.wrong()
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		s := &session{caller: c, resolved: c.resolve(), app: c.spec.Applicator, ctx: d.Context(), dag: d}
		return nil, s.refused(e)
	} else if err != nil {
		return nil, err
	}
	if !contract {
		r := *c.resolve()
		r.candidates = spec.Applicator.candidates(&spec, nil)
		to.resolved = &r
		to.once.Do(func() {})
	}
	return to, nil
}

// wrong returns the error if the contract of the call's handle is invalid. A capability that does not meet the contract is not a
// fault: it is rejected like any other candidate.
func (c *caller) wrong() error {
	for _, f := range c.resolve().faults {
		if f.Type != "no-candidate" {
			return &Error{Type: reasons.InputInvalid, Where: "cap/id", Message: "the contract of the handle of " + c.spec.Cap + ": " + f.Message}
		}
	}
	return nil
}

// meant returns a suggestion for an unknown id: the most similar registered id as text for an error, or "" if there is none.
func (s *session) meant(c candidate) string {
	known := s.app.Registry
	if s.spec.Tool != "" {
		known = s.app.Tools
	}
	if near := suggest.Closest(c.id, slices.Values(known.IDs())); c.reason == notFound && near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}
