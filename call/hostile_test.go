package call_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/test/memdb"
)

// What a capability answers cannot harm who asks, nor get lost on the way to its record.
func TestHostileReplies(t *testing.T) {
	nan := func(context.Context, *call.Request) (*call.Reply, error) {
		zero := 0.0
		return &call.Reply{Out: call.JSON(`1`), Usage: call.Usage{Usage: budget.Usage{USD: zero / zero, InputTokens: -5}}}, nil
	}
	for name, tc := range map[string]struct {
		does behaviour
		want string
	}{
		"usage that is no number": {nan, "1"},
		"usage without end": {func(context.Context, *call.Request) (*call.Reply, error) {
			return &call.Reply{Out: call.JSON(`1`), Usage: call.Usage{Usage: budget.Usage{USD: math.Inf(1)}}}, nil
		}, "1"},
		"text that is no UTF-8":     {answers("\"\xff\""), "!schema/invalid"},
		"a number too large":        {answers("1e999"), "!schema/invalid"},
		"one key twice":             {answers(`{"a":1,"a":2}`), "!schema/invalid"},
		"a message that is no text": {returns(&call.Error{Type: "x/\xff", Message: "\xff", Details: call.JSON("{")}), "!x/\uFFFD"},
		"an error without a type":   {returns(&call.Error{}), "!runtime/invoke-failed"},
		"another type":              {func(context.Context, *call.Request) (*call.Reply, error) { return &call.Reply{Type: "table"}, nil }, "!schema/invalid"},
		"bindings that are none": {func(context.Context, *call.Request) (*call.Reply, error) {
			return &call.Reply{Type: call.Plan, Plan: []byte("{}"), Bindings: call.JSON("[1]")}, nil
		}, "!schema/invalid"},
		"deep": {answers(strings.Repeat("[", 100_000)), "!schema/invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			for _, cfg := range []stone.Config{{}, {RunID: "r", Recorder: &forgetful{memdb.New(t)}}} {
				v := runCall(t.Context(), call.Spec{Applicator: app(w.cap(tc.does, call.Metadata{ID: "a", CanProduce: []string{call.Value, call.Plan}}))}, call.Budget{}, cfg)
				if v.brief() != tc.want {
					t.Errorf("got %s, want %s (%v)", v.brief(), tc.want, v.err)
				}
				if len(v.rec.Tried) != 1 {
					t.Errorf("the record has %d attempts, want 1: %+v", len(v.rec.Tried), v.rec)
				}
			}
		})
	}
}
