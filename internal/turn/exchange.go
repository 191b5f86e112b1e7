package turn

import (
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// An Exchange is a message of a user and the reply to it, as the journal has them. A run has several if messages have answered its
// questions.
type Exchange struct {
	Message string     // the id of the user's message
	Content []llm.Part // of it
	Reply   string     // the id of the reply; empty while it is being written
	Run     api.Run    // as it was at the end of the reply
	Parts   []Part     // of the reply
}

// Size is about how many bytes the exchange has for a client.
func (e *Exchange) Size() (n int) {
	for _, c := range e.Content {
		if n += len(c.Text); c.Media != nil {
			n += len(c.Media.Data) * 4 / 3
		}
	}
	for i := range e.Parts {
		p := &e.Parts[i]
		if n += len(p.ID) + len(p.Text) + len(p.Input); p.Output != nil {
			n += len(*p.Output)
		}
	}
	if _, value := Result(e.Run.Result); value != nil {
		n += len(e.Run.Result.Content)
	}
	return n
}
