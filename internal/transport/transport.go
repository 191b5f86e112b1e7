// Package transport wraps the transports of all HTTP clients in a run, in order to record or answer their requests. It is used by
// models and by capabilities of kind http.
package transport

import (
	"context"
	"net/http"
	"strings"
)

type (
	key     struct{}
	matched struct{}
)

// With returns a context with which Client wraps the transport of a client.
func With(ctx context.Context, wrap func(http.RoundTripper) http.RoundTripper) context.Context {
	return context.WithValue(ctx, key{}, wrap)
}

// Client returns c, or a copy with a wrapped transport if ctx requires it.
func Client(ctx context.Context, c *http.Client) *http.Client {
	wrap, ok := ctx.Value(key{}).(func(http.RoundTripper) http.RoundTripper)
	if !ok {
		return c
	}
	other := *c
	if other.Transport == nil {
		other.Transport = http.DefaultTransport
	}
	other.Transport = wrap(other.Transport)
	return &other
}

// Matched returns a context for a request that a recording identifies by other text than its body. That text leaves out names and
// places of the run, which differ in each run.
func Matched(ctx context.Context, by []byte) context.Context {
	return context.WithValue(ctx, matched{}, by)
}

// Match returns the text that identifies a request in a recording: the text given to Matched, or otherwise the body.
func Match(ctx context.Context, body []byte) []byte {
	if by, ok := ctx.Value(matched{}).([]byte); ok {
		return by
	}
	return body
}

type batched struct{}

// WithBatches returns a context whose model requests are held back and sent in batches, which have no rate limit and cost half as
// much.
func WithBatches(ctx context.Context) context.Context {
	return context.WithValue(ctx, batched{}, true)
}

// Batched reports whether model requests are held back for batches.
func Batched(ctx context.Context) bool {
	is, _ := ctx.Value(batched{}).(bool)
	return is
}

// Embeds returns the context for a request for embedding vectors. Texts of documents may wait for a batch if the server accepts
// such requests in batches, as OpenAI's and Gemini's do. A question never waits.
func Embeds(ctx context.Context, endpoint string, question bool) context.Context {
	if Batched(ctx) && (question || !strings.HasSuffix(endpoint, "/embeddings") && !strings.HasSuffix(endpoint, "/models")) {
		return context.WithValue(ctx, batched{}, false)
	}
	return ctx
}

// IsHeader reports whether a string is a valid header name: a token as defined in RFC 9110, section 5.6.2.
func IsHeader(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}
