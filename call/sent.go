package call

import (
	"cmp"
	"strings"

	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/llm"
)

// sent is the request as it was sent to a capability. It is recorded with the answer, so that package internal/view can show it
// to people.
type sent struct {
	System string `json:"system,omitempty"`
	Input  string `json:"input,omitempty"`  // the messages to a model, or the input of another capability
	Schema JSON   `json:"schema,omitempty"` // the schema that a model was told for its answer
}

// maxSent is the maximum length of each recorded text, in bytes.
const maxSent = 32 << 10

// sentTo returns the request that was sent to a capability, or to the model that it called. An agent records its own requests.
func sentTo(req *Request, to *llm.Request) *sent {
	switch {
	case req.Turn != nil:
		return nil
	case to == nil:
		return &sent{Input: bounds.Cut(string(req.Input), maxSent)}
	}
	s := &sent{System: bounds.Cut(to.System, maxSent)}
	if f := to.ResponseFormat; f != nil && len(f.Schema) <= maxSent {
		s.Schema = JSON(f.Schema)
	}
	var said []string
	for _, m := range to.Messages {
		text := ""
		for _, p := range m.Content {
			text += cmp.Or(p.Text, string(p.Value), mediaOf(p))
		}
		if len(to.Messages) > 1 {
			text = string(m.Role) + ": " + text
		}
		said = append(said, text)
	}
	s.Input = bounds.Cut(strings.Join(said, "\n\n"), maxSent)
	return s
}

func mediaOf(p llm.Part) string {
	if p.Media == nil {
		return ""
	}
	return "[" + p.Media.Type + "]"
}
