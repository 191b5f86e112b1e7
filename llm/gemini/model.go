package gemini

import (
	"context"
	"iter"
	"net/url"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// caller is the Model without its guard.
type caller struct{ *Model }

func (c caller) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		var name string
		body, err := c.Body(req, func(model string) (object, error) {
			name = model
			return c.fields(req, model)
		})
		if err != nil {
			yield(llm.Delta{Reply: &llm.Reply{}}, err)
			return
		}
		reply := c.at(name).Stream(ctx, body, func(id string) wire.Decoder { return newDecoder(id) }, yield)
		if reply != nil {
			yield(llm.Delta{Kind: llm.Done, Reply: reply}, nil)
		}
	}
}

// at returns a client of the method of a model. The protocol has the model in the address.
func (c caller) at(model string) *wire.Client {
	model = url.PathEscape(strings.TrimPrefix(model, "models/"))
	if c.config.NoStream {
		return c.Client.Below(model+":generateContent", nil)
	}
	return c.Client.Below(model+":streamGenerateContent", url.Values{"alt": {"sse"}})
}
