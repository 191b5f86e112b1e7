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
//		Input:      call.From(Question),
//		Dispatch:   call.Dispatch{Candidates: []string{"model/small", "model/large"}},
//		Done:       call.Done{Must: []string{"ends-in-a-number"}},
//	})
//
// A call is an ashlar like any other: Validate reports a call that nobody can
// answer, an unknown check, an effect that is not granted, before anything runs.
//
// # Capabilities
//
// A [Capability] is a function from a [Request] to a [Reply] with [Metadata]: what
// it answers, which effects it may have, what it costs, how many of it may be under
// way. [Func] makes one of a Go function and [Pipeline] one of a pipeline; packages
// below this one make them of models, programs, servers and solvers. A [Registry]
// holds them, keeps their limits, and holds down who fails again and again.
//
// # Who is asked
//
// Spec.Cap alone, or Dispatch.Candidates, or else whoever has the intent, the
// cheapest first; then the fallbacks of the [Policy]. Of these only those are asked
// who pass ten tests, from "cap/not-found" to "budget/cost"; the record of the call
// lists the others with the first test that each has failed. Candidates tells
// without asking anybody.
//
//   - A cascade asks one after the other. What fails is tried again, by the same
//     capability and then by the next, as far as Retry and SwitchOn say.
//   - A tournament asks all at once and takes the best answer.
//   - A race takes the first answer that passes, and cancels the others. With Hedge
//     each starts only when the one before is late.
//
// # The gate
//
// An answer is accepted when it fits its schema, every must of [Done] holds, and
// the share of the shoulds that hold, mixed with what a judge says if there is one,
// reaches ScoreMin. A must and a should are names: of a [Check] of the Applicator,
// or one that is always there:
//
//	schema-valid   the out fits its schema, which is always checked
//	non-empty      it is not null, blank, [] or {}
//	max-chars      its text has at most constraints.max-chars characters
//	json           its text is JSON
//	regex          its text matches constraints.regex
//	no-repetition  its text does not go round in circles
//	legal-move     see package call/uci
//
// What is refused can be mended: Dispatch.Repair gives it back, with what is wrong,
// before the next attempt. Nothing is committed before the gate: no node, and no
// effect of a plan that was answered and is not in order.
//
// # Plans
//
// A capability may answer with a plan. It is checked whole, runs at once within the
// effects of the call and on its account, and what it emits is the out, which
// passes the same gate. Its nodes stand beside the node of the call in the DAG.
// Package plan is the Applicator's Planner.
//
// # What it costs
//
// The account in the context (package budget) pays for every invocation, those of
// judges and repairers included, before it is made. An attempt that would overdraw
// it is not made: the call fails with "budget/exhausted". Each invocation is a
// recorded step, so that a run that is resumed pays for none of them again.
//
// # How it went
//
// The node of a call has a [Record] beside it, and so has its failure: see
// RecordOf. A failed call is an *[Error] whose Type says what went wrong, and with
// AllowFailure a node of type [Failed] in place of an end of the run. Each attempt
// sends the event "call-attempt" and each call "call-verdict"; [Counters] count
// them.
//
// # From outside
//
// [ReadRequest] reads the envelope of a request, in EDN or JSON, and
// [Applicator.Act] answers it as a pipeline of this one call.
package call
