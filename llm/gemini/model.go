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
		reply := c.Ask(ctx, req, wire.Question{
			Fields:  func(req *llm.Request, model string, way wire.Way) (object, error) { return c.fields(req, model, way) },
			Decoder: func(id string) wire.Decoder { return newDecoder(id) },
			Client:  c.at,
		}, yield)
		if reply != nil {
			yield(llm.Delta{Kind: llm.Done, Reply: reply}, nil)
		}
	}
}

// at returns a client for one method of a model. The protocol puts the model into the address.
func (c caller) at(model string) *wire.Client {
	model = url.PathEscape(strings.TrimPrefix(model, "models/"))
	if c.config.NoStream {
		return c.Client.Below(model+":generateContent", nil)
	}
	return c.Client.Below(model+":streamGenerateContent", url.Values{"alt": {"sse"}})
}
