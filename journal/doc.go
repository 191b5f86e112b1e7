// Package journal makes runs durable. A [Journal] records the steps of a run, so that no
// recorded step runs, or is paid for, twice.
//
//	db, err := sqlite.Open("stone.db", sqlite.Options{})
//	…
//	result, err := stone.Run(ctx, pipeline, stone.Config{RunID: "nightly", Recorder: journal.Keep(db, journal.Options{})})
//
// With the recorder that [Keep] returns, stone.Run starts a run, or resumes the run if the journal already contains it. The run
// can be resumed in the same process, or in another process after a crash. Package journal/sqlite stores a journal in a file, or
// in a temporary file for tests. Package journal/postgres stores it in a database that several machines can share.
//
// # The promise
//
// A step whose result was acknowledged never runs again. A result is acknowledged when a later step with effects starts, when a
// Step returns to a body that may have effects, when a watcher is notified of the result, and when the run ends. If a step was
// running when the process crashed, it may run again and is reported as possibly paid: see [Step]. No record is ever half-written.
// A resumed run yields the same DAG. Like any other system, this package cannot promise that a call is made exactly once. A body
// can call [Attempt] to find out whether it may have made a call before, and can send an idempotency key that consists of run ID
// and path (see [stone.Body.Path]).
//
// Steps are leaves, decisions and every [stone.Step] in a body, including the turns and the tool calls of agents.
//
// # Resuming
//
// A run can be resumed with the pipeline it was started with, or with a pipeline that differs only in steps that the run has not
// reached. In the second case, an event.Notice lists the changes. If the pipeline's fingerprint has changed in any other way,
// nothing runs, and the error is a [*ChangedError] that lists the changes. With Options.Force the run is resumed anyway: records
// stay valid, and steps without a record follow the new pipeline. A fingerprint covers neither prompts nor the code of functions. A
// changed prompt neither repeats a step nor stops the run: see event.Notice. A step whose input differs from the recorded input
// stops the run with kind "replay-mismatch". Options.Revision is recorded too; if it differs, an event at level warn is sent.
// Options.Again repeats recorded steps.
//
// Resuming a run that ended [Failed] retries the leaf or decision that made it fail, the failed lanes of a fan-out that lost too
// many lanes, and the failed steps inside these leaves and lanes. Rescued failures and dropped lanes are not retried. A failed step
// inside the failed leaf is retried even if the body handled the failure. Steps with a result are not repeated.
//
// All other runs resume where they stopped. The journal stores the input of a run, so the input is not needed again to resume the
// run.
//
// If a run is done, resuming it only replays it: nothing is recorded, and its outcome does not change. A step without a record
// fails with [ErrDone]. With Options.Force, the run continues instead.
//
// # Questions
//
// The journal also keeps the questions that a pipeline asks people. If the journal contains the answer to a question, the run uses
// it. Otherwise Config.Frontend asks the question. If there is no Frontend, the run ends [Waiting], with an error of kind
// [kind.Waiting]. [Answer] answers a question at any time and in any process; then the run can be resumed.
//
// # Leases
//
// A run has one holder at a time. If another process tries to acquire the run, it receives a [*HeldError] that names the holder.
// Once the holder no longer renews its lease, the other process can take over the run. Writes by a former holder are refused,
// except for the results of steps that it was running. These results may have been paid for, so they are kept for the new holder.
// If several results of a step are recorded, the first result counts.
//
// # Ending early
//
// Canceling the context cancels running steps. With Options.Drain, no new step starts, running steps have Options.Grace to finish,
// their results are recorded, and the error is [ErrDrained].
//
// # Incremental runs
//
// Options.Reuse names an earlier run. A leaf marked stone.Reusable takes its result from that run if it reads the same contents
// there. [AnyRun] means all runs. By default, these leaves reuse nothing. Even without Options.Reuse, a cached leaf (see
// stone.Detail) can take its result from any run if that result is not too old. [Diff] lists the leaves that differ between two
// runs, and why.
//
// # Budgets
//
// A budget applies to a whole run, no matter how often the run is resumed. A resumed run first charges its cost so far to the
// account in its context (see package budget): the usage of its steps, failed attempts included, and the estimate of each attempt
// without a result. Recorded steps are not charged again. Time is not carried over: it is measured from the opening of the account.
//
// # Secrets
//
// A node's ID is a hash of its content, so a secret cannot be removed from a record later. Instead, the recorder replaces each
// secret in the results of steps with "[redacted]" before the node is created. The DAG, the following steps and the journal
// contain only that text, in this run and when it is resumed. Therefore no step can pass a secret to another step: each step must
// read the secrets it uses. Because this text is the same for every secret, results do not change if a key does.
//
// Secrets are the values in Options.Secrets, values that a body marks with [Secret], and the secrets that this module's models,
// capabilities and tools use in the run: keys, header values and their fields, variables passed to programs, and passwords in
// URLs. Secrets encoded as JSON, URL escapes, hexadecimal or base64 are also found. Failures, questions, events and streamed text
// are redacted in the same way. An input DAG that contains a secret is refused. Names and paths of steps are not searched.
// [Redact] returns a recorder that only removes secrets, for runs that are not recorded.
//
// # Looking at runs
//
// The methods of [Journal] list runs as [RunInfo], and the steps, questions and nodes (as [NodeInfo]) of a run. By default, a page
// contains [DefaultLimit] runs. [Diff] returns each [Difference] of two runs. A run is in one [State]: [Running], [Waiting],
// [Answered], [Done], [Failed], [Canceled], [Drained], [Interrupted], [Refused] or [Damaged]. [Resumable] returns the runs that
// can continue without a person, and [Expire] answers the questions whose deadline has passed. The [Outline] of a run shows it as
// a tree: each [Branch] sums up the steps below a path, with a [BranchState] such as [BranchDone], [BranchOpen], [BranchPartly] or
// [BranchFailed]. [OutlineOf] builds one from steps. [Current] leaves out the steps that were repeated later.
//
// # Runs elsewhere
//
// [Elsewhere] returns a leaf that runs a pipeline as a separate run. A [Starter] starts the [Child] and reports its [ChildState].
//
// # For implementations
//
// A store records each [Row], the input of a run as its [InputStep] and the [Shape] of its pipeline. [RemoveChildren] removes the
// children of a removed run, and [NodesOf] yields the nodes of a DAG.
package journal
