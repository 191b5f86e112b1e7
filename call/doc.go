// Package call decides late who answers a step. A call names an intent and a
// contract; a capability is anything that can answer: a model, a solver, a program,
// a tool of an MCP server, a Go function, a plan, a whole pipeline. The Applicator
// finds the capabilities that may, asks them, judges what they answer, and commits
// only what passes:
//
//	app := &call.Applicator{Registry: call.NewRegistry(small, large, solver)}
//
//	answer := call.New("answer", Answer, call.Spec{
//		Applicator: app,
//		Intent:     "math/solve",
//		Queries:    dag.Types(Question),
//		Input:      func(d dag.DAG) (any, error) { return Question.Nearest(d) },
//		Dispatch:   call.Dispatch{Candidates: []string{"model/small", "model/large"}},
//		Done:       call.Done{Must: []string{"ends-in-a-number"}},
//	})
//
// A call is an ashlar like any other: Validate reports a call that nobody can
// answer, an unknown check, an effect that is not granted, before anything runs.
package call
