package wire

import (
	"errors"
	"time"

	"github.com/stonelayer/stone/llm"
)

// Unfinished is a Decoder of a protocol in which a server can answer before the model has
// finished.
type Unfinished interface {
	Decoder
	// Rest returns the path, below the endpoint, where the server has the answer as one
	// document, or "" if it has no more to say than what was received. It is called after
	// End. The Decoder then handles that document, and End again.
	Rest() string
}

// restEvery is the time between two requests for the rest of an answer.
const restEvery = 2 * time.Second

// path returns where the rest of the answer is, if the server has not sent all of it.
func (s *session) path(err error) string {
	d, ok := s.decoded.(Unfinished)
	_, cut := errors.AsType[*llm.TruncatedError](err)
	if !ok || err != nil && !cut {
		return ""
	}
	return d.Rest()
}
