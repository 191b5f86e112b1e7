// Package transport wraps the transport of all HTTP clients in a run, to record or answer their requests. Models and capabilities
// of kind http use it.
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

// With returns a context in which Client wraps a client's transport with wrap.
func With(ctx context.Context, wrap func(http.RoundTripper) http.RoundTripper) context.Context {
	return context.WithValue(ctx, key{}, wrap)
}

// Client returns c, or a copy of it with the transport of the context.
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

// Matched returns a context for a request that a recording identifies by a text other than its body, without the run's names and
// places, which differ in each run.
func Matched(ctx context.Context, by []byte) context.Context {
	return context.WithValue(ctx, matched{}, by)
}

// Match returns the text that identifies a request in a recording.
func Match(ctx context.Context, body []byte) []byte {
	if by, ok := ctx.Value(matched{}).([]byte); ok {
		return by
	}
	return body
}

type batched struct{}

// WithBatches returns a context whose model requests are held back for batches: batches have no rate limit and cost half.
func WithBatches(ctx context.Context) context.Context {
	return context.WithValue(ctx, batched{}, true)
}

// Batched reports whether requests to models are held back for batches.
func Batched(ctx context.Context) bool {
	is, _ := ctx.Value(batched{}).(bool)
	return is
}

// Embeds returns the context of a request for vectors. Texts of documents may wait for a batch at servers that accept such
// requests in batches: OpenAI's and Gemini's. A question never waits.
func Embeds(ctx context.Context, endpoint string, question bool) context.Context {
	if Batched(ctx) && (question || !strings.HasSuffix(endpoint, "/embeddings") && !strings.HasSuffix(endpoint, "/models")) {
		return context.WithValue(ctx, batched{}, false)
	}
	return ctx
}

// IsHeader reports whether a text can be the name of a header: a token of RFC 9110, section 5.6.2.
func IsHeader(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}
