// Package plan runs programs that are data: plans, in EDN or JSON, from a file or
// from a model.
//
//	{:id "answer"
//	 :nodes [{:op :call :intent :text/summarise :input {:text {:slot/id :letter}} :as :summary
//	          :dispatch {:allow-failure? true}}
//	         {:op :call :intent :text/respond :as :reply
//	          :input {:prompt {:slot/id :letter} :about {:slot/id [:summary :text]}}
//	          :when {:present? :summary}}
//	         {:op :emit :input {:final :reply} :when {:present? :reply}}]}
//
// A plan is read, checked whole, and compiled to an ashlar that is run like any
// other, by the same interpreter, into the same DAG:
//
//	p, err := plan.Read(text)
//	…
//	input, err := plan.Bind(dag.DAG{}, map[string]any{"letter": letter})
//	…
//	cfg := stone.Config{Input: input, Grant: []string{"net/http"}}
//	if err := p.Check(app, plan.Options{}, cfg).Err(); err != nil {
//		return err // everything that is wrong, each with its place in the text
//	}
//	a, err := p.Ashlar(app, plan.Options{Slots: []string{"letter"}})
//	…
//	result, err := stone.Run(ctx, a, cfg)
//	…
//	final, err := plan.Emission.From(result.DAG)
//
// # Slots
//
// A slot is a node type. The node that has "as" writes one of that name, and
// {:slot/id :x} reads the nearest. So a plan stands between steps in Go: it reads
// what they produce, and they read what it produces, with dag.NewType of the same
// name. What a slot holds is data: a template in it is not looked at. Paths lead
// into a slot, [:x :items 0 :name], and {:slot/record :x} is how its call went:
// "cap/id", "attempts", "failure/type", "error" and "out".
//
// A slot has to be there on every way to where it is read: what only a guarded node
// or some branch defines is read under {:present? :x}, or under the same guard. The
// slot of a call that is allowed to fail may be read without; where the call has
// failed, the reader does so too, with kind missing-input.
//
// A guard that is an expression needs its language, which a program links with
// import _ "github.com/stonelayer/stone/call/cel". The command stone has it.
//
// # Lanes
//
// After a parallel or a map comes a reduce. In it and after it the slots of lanes
// are read like others: one that a single lane of a parallel defines is what that
// lane had, one that several lanes or the body of a map define is the list of what
// they had, in the order of the lanes, without those that were lost. The last
// emission of the lanes is that of the last lane that has one.
//
// # What is written
//
// Beside its slots and emissions a plan writes a node of type stone/plan where it
// begins, stone/passed for every node that its guard has passed over, stone/lanes
// where lanes come together, and stone/result for calls without "as".
// The mode changes when a node runs, never what is written: ids are the same.
//
// # Answers that are plans
//
// A capability can answer with a plan. It is checked like any other, within the
// grant, the budget and the depth that its call has left, and its nodes stand beside
// that of the call. Capability makes a capability of a plan file in this way.
package plan
