package cli

import (
	"context"
	"testing"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/plan"
)

// Tools of intents, capabilities and plans say what they do.
func TestAbout(t *testing.T) {
	never := func(context.Context, *call.Request) (*call.Reply, error) { return nil, nil }
	app := &call.Applicator{
		Registry: call.NewRegistry(call.Capability{Metadata: call.Metadata{ID: "small", Kind: "go", Intents: []string{"text/sort", "text/check"}}, Invoke: never}),
		Intents:  map[string]call.Intent{"text/sort": {Description: "Sort lines by their letters."}},
	}
	for name, want := range map[string]string{
		":text/sort":  "Sort lines by their letters.",
		":text/check": "Send a message to text/check, and get its answer.",
		":small":      "Sort lines by their letters.",
		":none/such":  "",
	} {
		if got := about(app, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	program, err := plan.Read([]byte(`{:id "both" :nodes [{:op :call, :intent :text/sort, :input {:text "x"}, :as :a} {:op :call, :intent :text/sort, :input {:text "y"}, :as :b}
		{:op :call, :intent :text/check, :input {:text {:slot/id :a}}, :as :c} {:op :emit, :input {:c {:slot/id :c}, :b {:slot/id :b}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := openPlan(program, app, &plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := aboutPlan(app, "both", p), "Run the plan both, which calls text/sort (Sort lines by their letters), text/check."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
