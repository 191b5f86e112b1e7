// Package journal makes runs durable. A [Journal] records the steps of a run, so that no
// recorded step runs, or is paid for, twice.
//
//	db, err := sqlite.Open("stone.db", sqlite.Options{})
//	…
//	result, err := stone.Run(ctx, pipeline, stone.Config{RunID: "nightly", Recorder: journal.Keep(db, journal.Options{})})
//
// With the recorder of [Keep], stone.Run starts a run or resumes the run of that name: in the same process, or in another one
// after a crash. Package journal/sqlite keeps a journal in a file, or in a temporary one for tests; journal/postgres keeps one in
// a database that several machines share.
//
// # The promise
//
// A step whose result was acknowledged never runs again. A result is acknowledged when a later step with effects starts, when a
// Step returns to a body that may have effects, when a watcher is told of it, and when the run ends. A step that was running at a
// crash may run again and is reported as possibly paid: see [Step]. No record is ever half-written. A resumed run yields the same
// DAG. No system can promise that a call is made exactly once, nor does this package. A body can read the number of its attempt
// with [Attempt] and send an idempotency key made from run id and path, see [stone.Body.Path].
//
// Steps are leaves, decisions and every [stone.Step] in a body, including the turns and the tool calls of agents.
//
// # Resuming
//
// A run is resumed with the pipeline it was started with, or with one that differs only in steps that it has not reached: then an
// event.Notice lists the changes. After any other change of the fingerprint nothing runs, and the error is a [*ChangedError] that
// lists the changes. With Options.Force the run resumes anyway: records stay valid, and steps without one follow the new
// pipeline. A fingerprint covers neither prompts nor the code of functions. A changed prompt does not repeat or stop anything:
// see event.Notice. A step whose input differs from its record's stops the run with kind "replay-mismatch". Options.Revision is
// recorded too: a difference is an event at level warn. Options.Again repeats recorded steps.
//
// Resuming a run that ended [Failed] retries the leaf or decision that failed it, the
// failed lanes of a fan-out that lost too many, and the failed steps inside those.
// Rescued failures and dropped lanes are not retried. A step that failed inside the
// failed leaf is retried even if the body handled its failure; steps that have a result
// are not.
//
// All other runs resume where they stopped. The journal keeps the input of a run, so
// resuming does not need it again.
//
// A run that is done is replayed, which records nothing and never changes its end. A step without a record fails with [ErrDone].
// With Options.Force the run continues instead.
//
// # Questions
//
// The journal also keeps the questions that a pipeline asks people. A recorded answer is
// used first; without one, Config.Frontend is asked; without a Frontend, the run ends
// [Waiting] with an error of kind [kind.Waiting]. [Answer] answers a question at any time
// and in any process; then the run can be resumed.
//
// # Leases
//
// A run has one holder at a time. Another process gets a [*HeldError] that names the holder, or takes over the run once the
// holder no longer renews its lease. Writes of a former holder are refused, except that results of its running steps are kept for
// the new holder: they may have been paid for. The first result of a step wins.
//
// # Ending early
//
// Cancelling the context cancels running steps. Options.Drain is gentler: no new
// step starts, running steps may finish within Options.Grace and are recorded, and
// the error is [ErrDrained].
//
// # Incremental runs
//
// Options.Reuse names an earlier run. Leaves marked stone.Reusable take their results from it if they read the same contents;
// [AnyRun] means all runs. By default nothing is reused. Even without Options.Reuse, a cached leaf (see stone.Detail) takes
// results from any run if they are not too old. [Diff] lists the leaves that differ between two runs, and why.
//
// # Budgets
//
// A budget applies to a run, however often it is resumed. A resumed run first charges the account of its context (package budget)
// with its cost so far: the usage of its steps, failed attempts included, and the estimate of each attempt without a result.
// Recorded steps are not charged again. Time is not carried over: it counts from when the account was opened.
//
// # Secrets
//
// A node's id is a hash of its content, so a secret cannot be removed from a record later. Instead, the recorder replaces each
// secret in the results of steps by "[redacted]" before the node exists. The DAG, the following steps and the journal contain
// only that text, in this run and when it is resumed. No secret therefore passes from step to step: read it where it is used. The
// text is the same for every secret, so a changed key does not change results.
//
// Secrets are the values in Options.Secrets, values that a body marks with [Secret], and the secrets that models, capabilities
// and tools of this module use in the run: keys, header values and their fields, variables passed to programs, passwords in
// addresses. They are also found in JSON, URLs, hexadecimal and base64. Failures, questions, events and streamed text are
// redacted in the same way. An input DAG that contains a secret is refused. Names and paths of steps are not searched. [Redact]
// returns the recorder for runs that are not kept.
//
// # Looking at runs
//
// [Journal] has methods that list runs as [RunInfo], steps, questions and nodes as [NodeInfo]; a page of runs has [DefaultLimit].
// [Diff] returns each [Difference] of two runs. A run is in one [State]: [Running], [Waiting], [Answered], [Done], [Failed],
// [Canceled], [Drained], [Interrupted], [Refused] or [Damaged]. [Resumable] returns the runs that can continue without a person,
// and [Expire] answers the questions whose deadline has passed. The [Outline] of a run shows it as a tree: each [Branch] sums up
// the steps below a path, with a [BranchState] such as [BranchDone], [BranchOpen], [BranchPartly] or [BranchFailed]. [OutlineOf]
// builds one from steps.
//
// # Runs elsewhere
//
// [Elsewhere] is a leaf that runs a pipeline as a run of its own. A [Starter] starts the [Child] and reports its [ChildState].
//
// # For implementations
//
// A store records each [Row], the input of a run as its [InputStep] and the [Shape] of its pipeline. [RemoveChildren] removes the
// children of a removed run, and [NodesOf] yields the nodes of a DAG.
package journal
