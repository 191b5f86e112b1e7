package call

import (
	"fmt"

	"github.com/stonelayer/stone/internal/reasons"
)

// A Handle refers to a capability. It contains the capability's id and the contract under which it may be invoked, and is a value
// that one call can pass to another. A call that uses the handle can only narrow the contract; see Spec.CapFrom.
type Handle struct {
	Cap      string   `json:"cap/id"`
	Requires Requires `json:"requires,omitzero"`
	Done     Done     `json:"done,omitzero"` // its ScoreMin is a lower bound
}

// contract reports whether the handle has any requirements.
func (h *Handle) contract() bool {
	r := &h.Requires
	return r.Reply+r.InSchema+r.OutSchema+r.Kind != "" || len(r.Tags) > 0 || h.Done.any() || h.Done.ScoreMin != nil
}

// take sets the call's capability to the handle's and adds the handle's requirements to the call's own.
func (s *Spec) take(h Handle) error {
	s.Cap = h.Cap
	for _, field := range []struct {
		name    string
		to      *string
		handled string
	}{
		{"reply", &s.Requires.Reply, h.Requires.Reply},
		{"in-schema", &s.Requires.InSchema, h.Requires.InSchema},
		{"out-schema", &s.Requires.OutSchema, h.Requires.OutSchema},
		{"cap/kind", &s.Requires.Kind, h.Requires.Kind},
	} {
		switch {
		case field.handled == "":
		case *field.to == "":
			*field.to = field.handled
		case *field.to != field.handled:
			return &Error{Type: reasons.InputInvalid, Where: "cap/id", Message: fmt.Sprintf("the handle of %s requires the %s %s, and the call %s: a call can only narrow the contract of a handle", h.Cap, field.name, field.handled, *field.to)}
		}
	}
	s.Requires.Tags = union(s.Requires.Tags, h.Requires.Tags)
	s.Done.Must, s.Done.Should = union(s.Done.Must, h.Done.Must), union(s.Done.Should, h.Done.Should)
	if least := h.Done.ScoreMin; least != nil && (s.Done.ScoreMin == nil || *s.Done.ScoreMin < *least) {
		s.Done.ScoreMin = least
	}
	return nil
}
