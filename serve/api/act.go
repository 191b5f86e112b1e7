package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"

	"github.com/stonelayer/stone/internal/sse"
)

// Act sends a request to a capability. The envelope has the format that "stone act" reads, and is sent as JSON. If id is not
// empty, a run with this id stores the answer, and repeating the request returns the stored answer without another call. If no
// capability returns an answer, the error is an *ActError.
func (c *Client) Act(ctx context.Context, id string, envelope any) (Result, error) {
	var reply Reply
	if err := c.call(ctx, act(id, envelope), &reply); err != nil {
		return Result{}, err
	}
	return resultOf(reply)
}

// A Chunk is an element that Stream yields: a piece of the answer or, as the last element, the whole answer.
type Chunk struct {
	Piece
	Result *Result // nil for a piece
}

// Stream is like Act, but yields the pieces of the answer as they arrive, followed by the whole answer. Only the whole answer has
// passed all checks. If the connection breaks, Stream yields an error; if id is not empty, it is then safe to repeat the request.
func (c *Client) Stream(ctx context.Context, id string, envelope any) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		r := act(id, envelope)
		r.accept = "text/event-stream"
		resp, err := c.send(ctx, r)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		defer resp.Body.Close()
		for data, err := range messages(resp.Body) {
			var next Chunk
			if err == nil {
				next, err = chunk(data)
			}
			if !yield(next, err) || err != nil || next.Result != nil {
				return
			}
		}
	}
}

func act(id string, envelope any) request {
	r := request{method: http.MethodPost, path: path("act"), body: envelope}
	if id != "" {
		r.query, r.repeat = url.Values{"id": {id}}, true
	}
	return r
}

// messages yields the data of server-sent events. It yields an error when the stream ends.
func messages(body io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var events sse.Reader
		for buffer := make([]byte, 32<<10); ; {
			n, err := body.Read(buffer)
			events.Feed(buffer[:n])
			for {
				e, ok, err := events.Next()
				if err != nil {
					yield(nil, err)
					return
				}
				if !ok {
					break
				}
				if !yield(e.Data, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, fmt.Errorf("the stream was cut: %w", err))
				return
			}
		}
	}
}

// chunk decodes the data of an event: a piece, recognized by its type, or the envelope of the answer.
func chunk(data []byte) (next Chunk, err error) {
	var reply Reply
	if err = json.Unmarshal(data, &next.Piece); err == nil && next.Type == "" {
		err = json.Unmarshal(data, &reply)
	}
	if err != nil {
		return next, fmt.Errorf("an event cannot be read: %w", err)
	}
	if next.Type != "" {
		return next, nil
	}
	result, err := resultOf(reply)
	next.Result = &result
	return next, err
}

func resultOf(reply Reply) (Result, error) {
	switch {
	case reply.Error != nil:
		return Result{}, reply.Error
	case reply.Result == nil:
		return Result{}, fmt.Errorf("the reply has neither a result nor an error")
	}
	return *reply.Result, nil
}
