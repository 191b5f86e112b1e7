package stonetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/stonetest"
)

func echo(ctx context.Context, req *call.Request) (*call.Reply, error) {
	if string(req.Input) == `"slow"` {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Minute):
		}
	}
	out := req.Input
	if len(out) == 0 || string(out) == `{"a":` {
		return nil, &call.Error{Type: reasons.InvalidRequest, Message: "the input is not JSON"}
	}
	return &call.Reply{Out: out}, nil
}

func TestCapability(t *testing.T) {
	stonetest.TestCapability(t, stonetest.Capability{
		Make: func(*testing.T) call.Capability {
			return call.Capability{Metadata: call.Metadata{ID: "echo", Kind: "go"}, Invoke: echo}
		},
		OK:   &call.Request{Intent: "x/y", Input: call.JSON(`{"a":1}`)},
		Slow: &call.Request{Intent: "x/y", Input: call.JSON(`"slow"`)},
	})
}
