package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/llm"
)

// replyJSON is the JSON output of model call.
type replyJSON struct {
	Text       string         `json:"text"`
	Reasoning  string         `json:"reasoning"`
	Refusal    string         `json:"refusal,omitempty"`
	ToolCalls  []llm.ToolCall `json:"tool_calls"`
	StopReason *string        `json:"stop_reason"` // null if the server did not send one
	Usage      llm.Usage      `json:"usage"`
	Model      string         `json:"model,omitempty"`
	ID         string         `json:"id,omitempty"`
	RequestID  string         `json:"request_id,omitempty"`
	Error      *errorJSON     `json:"error"`
}

// errorJSON is the JSON output for a failed call.
type errorJSON struct {
	// Kind is "http", "provider", "protocol", "cut-short", "timeout", "connect",
	// "canceled" or "error".
	Kind      string `json:"kind"`
	Message   string `json:"message"`
	Status    int    `json:"status,omitempty"` // for "http"
	Body      string `json:"body,omitempty"`   // for "http"
	Type      string `json:"type,omitempty"`   // for "provider"
	Code      string `json:"code,omitempty"`   // for "provider"
	RequestID string `json:"request_id,omitempty"`
}

func shownReply(ctx context.Context, r *llm.Reply, err error) replyJSON {
	out := replyJSON{
		Text: r.Text, Reasoning: r.Reasoning, Refusal: r.Refusal, ToolCalls: r.ToolCalls, Usage: r.Usage,
		Model: r.Model, ID: r.ID, RequestID: cmp.Or(r.RequestID, llm.RequestID(err)), Error: shownError(ctx, err),
	}
	if out.ToolCalls == nil {
		out.ToolCalls = []llm.ToolCall{}
	}
	if r.StopReason != "" {
		out.StopReason = &r.StopReason
	}
	return out
}

func shownError(ctx context.Context, err error) *errorJSON {
	if err == nil {
		return nil
	}
	e := &errorJSON{Kind: "error", Message: err.Error(), RequestID: llm.RequestID(err)}
	switch {
	case ctx.Err() != nil:
		e.Kind = "canceled"
	case is[*llm.ProtocolError](err):
		e.Kind = "protocol"
	case is[*llm.TruncatedError](err):
		e.Kind = "cut-short"
	case is[*llm.TimeoutError](err): // must be checked before "connect", which it may contain
		e.Kind = "timeout"
	case is[*llm.ConnectError](err):
		e.Kind = "connect"
	}
	if h, ok := errors.AsType[*llm.HTTPError](err); ok {
		e.Kind, e.Status, e.Body = "http", h.Status, h.Body
	}
	if p, ok := errors.AsType[*llm.ProviderError](err); ok {
		e.Kind, e.Type, e.Code = "provider", p.Type, p.Code
	}
	return e
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// watched wraps a model so that its calls show a progress line on the terminal.
type watched struct {
	llm.Model
	name string
	out  io.Writer
}

// Stream implements llm.Model.
func (w *watched) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		const frame = 100 * time.Millisecond
		started, came := time.Now(), 0
		var drawn time.Time
		draw := func() {
			drawn = time.Now()
			line := fmt.Sprintf("%s: %d bytes in %v", w.name, came, drawn.Sub(started).Round(frame))
			fmt.Fprintf(w.out, "\r\x1b[K%s", text.Line(line))
		}
		draw()
		defer fmt.Fprint(w.out, "\r\x1b[K")
		for d, err := range w.Model.Stream(ctx, req) {
			came += len(d.Text)
			if time.Since(drawn) >= frame {
				draw()
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// A copier is an http.RoundTripper that copies response bodies to a writer, including the parts that the model does not read.
type copier struct {
	http.RoundTripper
	out io.Writer
}

// rest is the time limit for reading the rest of a body after the model has stopped reading.
const rest = time.Second

// RoundTrip implements http.RoundTripper.
func (c copier) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	stop := context.AfterFunc(req.Context(), func() { time.AfterFunc(rest, cancel) })
	resp, err := c.RoundTripper.RoundTrip(req.WithContext(ctx))
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	resp.Body = &copiedBody{resp.Body, io.TeeReader(resp.Body, c.out), cancel}
	return resp, nil
}

type copiedBody struct {
	io.Closer
	io.Reader
	cancel func()
}

// Close reads the rest of the body.
func (b *copiedBody) Close() error {
	_, _ = io.Copy(io.Discard, b.Reader) // Read has already reported a premature end
	err := b.Closer.Close()
	b.cancel()
	return err
}
