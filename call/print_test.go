package call_test

import (
	"testing"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
)

// What a call demands is in its fingerprint, what it may cost is not.
func TestPrint(t *testing.T) {
	answer := dag.NewType[string]("answer")
	app := &call.Applicator{}
	strict := &call.Applicator{Policy: call.Policy{Default: call.Rules{Done: call.Done{Must: []string{"json"}}}}}
	base := call.Spec{Applicator: app, Intent: "text/respond"}
	with := func(edit func(*call.Spec)) call.Spec {
		s := base
		edit(&s)
		return s
	}
	print := func(s call.Spec) dag.ID { return call.New("c", answer, s).Fingerprint() }
	for name, s := range map[string]call.Spec{
		"intent": with(func(s *call.Spec) { s.Intent = "text/rewrite" }),
		"cap":    with(func(s *call.Spec) { s.Cap = "one" }),
		"must":   with(func(s *call.Spec) { s.Done.Must = []string{"json"} }),
		"policy": with(func(s *call.Spec) { s.Applicator = strict }),
		"race":   with(func(s *call.Spec) { s.Dispatch.Strategy = call.Race }),
	} {
		if print(s) == print(base) {
			t.Errorf("a call with another %s has the same fingerprint", name)
		}
	}
	if print(with(func(s *call.Spec) { s.Budget.Tokens = 7 })) != print(base) {
		t.Error("a call with another budget has another fingerprint: what was paid for would be paid for again")
	}
}
