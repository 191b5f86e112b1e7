package call_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
)

// A capability that says what it used before it failed is paid for that.
func TestUsageOfAFailure(t *testing.T) {
	for name, text := range map[string]string{
		"beside the error": `{"error":{"type":"kiln/cold"},"usage":{"input-tokens":7,"usd":0.5}}`,
		"in a result":      `{"result":{"type":"error","error":{"type":"kiln/cold"},"usage":{"input-tokens":7,"usd":0.5}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			cold := call.Capability{Metadata: call.Metadata{ID: "kiln", Intents: []string{"fire"}}, Invoke: func(context.Context, *call.Request) (*call.Reply, error) {
				return call.ReadOutput([]byte(text))
			}}
			app := &call.Applicator{Registry: call.NewRegistry(cold)}
			trace, spec, err := call.ReadRequest([]byte(`{"proto":1,"trace":{"id":"k"},"task":{"intent":"fire"},"input":{}}`))
			if err != nil {
				t.Fatal(err)
			}
			account := budget.New(budget.Limits{})
			response, _ := app.Act(budget.With(t.Context(), account), trace, spec, stone.Config{})
			var failed *call.Error
			if !errors.As(response.Err, &failed) || failed.Record == nil || failed.Record.Usage.USD != 0.5 || account.Used().InputTokens != 7 {
				t.Errorf("%v, record %+v, account %+v", response.Err, failed, account.Used())
			}
		})
	}
}
