// Package call routes steps to capabilities. A call names an intent and a contract. A capability is anything that can answer the
// call: a model, a solver, a program, a tool of an MCP server, a Go function, a plan or a whole pipeline. The Applicator is the
// router: it selects the capabilities that qualify, invokes them, checks their answers, and commits only an answer that passes.
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
// A call is an ashlar like any other. Validate reports a call without a candidate, an
// unknown check and an effect that is not granted before anything runs.
//
// # Capabilities
//
// A [Capability] is a function from a [Request] to a [Reply], with [Metadata]: the intents it answers, the effects it needs and
// may have, its price, and how many invocations may run at once. [Func] wraps a Go function, and [Pipeline] wraps a pipeline.
// Other packages wrap models, programs, servers and solvers. A [Registry] contains them, enforces their limits, and temporarily
// removes a capability from service if it is repeatedly unavailable.
//
// A capability without a schema for its input or its out meets every such schema that a call requires; the call then checks the
// answer. A model is told the schema of the call's Go type, or the schema that the call or its intent names ([Request].Schema).
//
// # Selection
//
// The candidates are either Spec.Cap alone, or Dispatch.Candidates, or all capabilities with the intent, cheapest first. The
// fallbacks of the [Policy] follow. A candidate is invoked if it passes ten tests, from "cap/not-found" to "budget/cost". The
// record of the call lists the other candidates, each with the first test that it failed. Candidates returns the same list
// without invoking anything. With Spec.CapFrom or Spec.CandidatesFrom, the ids are values of the run; until the call is made,
// every capability counts as a candidate.
//
//   - A [Cascade] invokes one candidate after the other. A failed attempt is repeated, first with the same capability and then
//     with the next, as Retry and SwitchOn allow.
//   - A [Tournament] invokes all at once and accepts the best answer.
//   - A [Race] accepts the first answer that passes and cancels the others. With Hedge, each candidate starts only when the
//     previous one has failed or is late.
//   - An [Agreement] invokes the first two or more candidates at once: see [Agree]. If their answers pass the gate and agree, the
//     first one wins. Otherwise the others follow as a cascade.
//
// # The gate
//
// An answer is accepted if it fits its schema, passes every must of [Done], and its score reaches ScoreMin. The score is the
// share of the shoulds that pass, combined with the score of a judge if there is one. Each must or should names a [Check], either
// one of the Applicator's or a built-in one:
//
//	schema-valid     the answer fits its schema, which is always checked
//	plan-valid       it is a plan that can run, as text or data; a model is told how plans are written
//	non-empty        it is not null, blank, [] or {}
//	max-chars its text is at most constraints.max-chars characters long
//	json             its text is JSON
//	regex            its text matches constraints.regex
//	no-repetition    its text does not repeat itself
//	response-format it fits the format of the request to a [Model]; tool calls and refusals do
//	legal-move       see package x/solve/uci
//
// A rejected answer can be repaired: Dispatch.Repair sends it back, with the failed checks, before the next attempt. Nothing is
// committed before the gate: no node is added, and an invalid returned plan has no effect.
//
// # The door
//
// Spec.Admit lists the requirements on the input, in the form of [Done]. The checks are the same, but run on the input, as their
// out, before any capability is invoked. A rejected input fails with "input/rejected" and is never retried. [Admit] does the same
// in a separate step. Validate compares an expression with the type of the input; see [CheckFacts].
//
// # Plans
//
// A capability may answer with a plan. The plan is checked as a whole and runs within the call's effects and on the call's
// account. The plan's emission is the answer, which passes through the same gate. The plan's nodes are kept in the DAG beside the
// call's node. Package plan is the Applicator's Planner. The tool [Apply] runs a plan that is a value of the run in the same way.
//
// # Nesting
//
// A capability that is a pipeline or a program may make calls, and so may a plan that it returns. [Request].Stack lists the
// enclosing calls. A call nested in 100 others is rejected.
//
// # Models
//
// [Model] makes an llm.Model from an Applicator and a Spec. An agent's turns are then calls: each turn uses a cascade or another
// strategy, with circuit breakers and a gate. For plain failover between models, see llm.Fallback.
//
// # Cost
//
// The account in the context (package budget) is charged before every invocation, including invocations of judges and repairers.
// An attempt that would overdraw the account is not made, and the call fails with "budget/exhausted". Each invocation is a
// recorded step, so a resumed run does not pay for any of them again. With a [Cache], set for a call or for an intent, a call
// reuses the answer of an equal call in an earlier run in the journal.
//
// # Records
//
// The meta of a call's node, or of its failure, contains a [Record]; see RecordOf. The Record contains the strategy and all
// attempts, each with the [Verdict] of every check and of the judge. A failed call returns an *[Error] whose Type is the
// failure's kind. With AllowFailure, the failure becomes a node of type [Failed] and the run continues. Each attempt sends the
// event "call-attempt", and each call sends "call-verdict"; [Counters] count attempts and calls.
//
// # Requests from outside
//
// [ReadRequest] reads the envelope of a request, in EDN or JSON, and [Applicator.Act] answers it in a pipeline with that one
// call.
//
// # Reading calls
//
// [SpecOf] returns the Spec of a call, and [TurnOf] the Spec of an agent's [Model]. [RecordIn] reads the Record in the meta of a
// recorded step. [AsError] turns any error into an *[Error]. The node of [Admit] is of type [Admitted] and contains an
// [Admission]. A [Rejection] says why a candidate was not invoked. [Requires] filters candidates, and the [Rule]s in [Roles] say
// who may use an effect. A [Handle] is a capability as a value, which one call can pass to another. A [Frame] of a [Request]
// describes one of the enclosing calls.
//
// # For kinds of capabilities
//
// [ReadOutput] reads a program's output, either an envelope or plain text. [ReadReply] reads only an envelope, of at most
// [MaxEnvelope] bytes. [VoiceWriter] streams the output of a program. [BuiltIn] returns a check from the list above, and
// [CheckBy] makes a check from a capability; [BuiltInChecks] and [BuiltInSchemas] list the names. A [Tally] holds the counts of
// [Counters], and [KPIs] hold the rates.
package call
