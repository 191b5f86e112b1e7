package call_test

import (
	"context"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
)

func TestIntentThatWasMeant(t *testing.T) {
	app := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{ID: "a", Intents: []string{"mail/send", "text/greet"}},
		func(context.Context, map[string]any) (string, error) { return "", nil }))}
	for _, test := range []struct{ intent, want string }{
		{"text/gret", "text/greet"},
		{"mail/sent", "mail/send"},
		{"ore/dig", ""},
	} {
		found := stone.Validate(call.New("c", out, call.Spec{Applicator: app, Intent: test.intent}), stone.Given{}).Errors()
		if len(found) != 1 || found[0].Type != "no-candidate" || found[0].Suggestion != test.want {
			t.Errorf("%s: %v, want no-candidate and %q", test.intent, found, test.want)
		}
	}
}
