// Package journal makes runs durable: what a run has done is kept in a [Journal],
// and what was paid for is not paid for again.
//
//	db, err := sqlite.Open("stone.db", sqlite.Options{})
//	…
//	result, err := stone.Run(ctx, pipeline, stone.Config{RunID: "nightly", Recorder: journal.Keep(db, journal.Options{})})
//
// With the recorder that [Keep] returns, stone.Run starts a run, or resumes it if
// the journal has one of that name: in this process, or in another one after a
// crash. [Memory] is a journal that lives as
// long as the process, journal/sqlite keeps one in a file. Package journaltest
// tests any implementation.
//
// # The promise
//
// A step whose result was acknowledged is never run again. A step in flight at a
// crash may run again, and is reported as possibly paid: see [Step]. Nothing is
// ever half-written. A resumed run yields the same DAG. Nobody can promise that
// a call is made exactly once, and this package does not: a body can ask with
// [Attempt], and give what it calls an idempotency key made of run and path, see
// [stone.Body.Path].
//
// Steps are leaves, decisions and every [stone.Step] in a body, among them the
// turns and the tool calls of agents.
//
// # Resuming
//
// A run is resumed with the pipeline with which it was begun. If the fingerprint
// of another one is found, nothing runs and the error is a [*ChangedError] that
// says in words what changed. Options.Force goes on all the same: what still has
// the same key is taken from the journal, the rest is done. A fingerprint cannot
// see inside functions. Options.Revision is kept for that: a difference is an
// event at level warn and nothing more.
//
// What failed is tried again when a run that had ended [Failed] is resumed: the
// leaf or decision with which the run ended; of a fan-out that lost too many
// lanes, those of its lanes; and what failed inside them. Everything else stands,
// also the failures that were rescued and the lanes that were dropped on the way.
// A step that failed inside the failed leaf is tried again even if the body had
// dealt with its failure; its steps that have a result are not.
//
// Runs that ended otherwise go on where they stopped, a run that is done is
// replayed. The input of a run is kept with it, so that who resumes need not give
// it again.
//
// # Questions
//
// What a pipeline asks a person is in the journal too. A question is answered by
// its recorded answer if there is one, else by Config.Frontend, and else the run
// ends [Waiting], with an error that is [kind.Waiting]. [Answer] answers, then
// or later, in any process, and the run can be resumed.
//
// # Leases
//
// A run belongs to one holder at a time. Whoever else wants it gets a
// [*HeldError] that names the holder, or takes it over when the holder gives no
// sign of life any more; what a former holder still writes is refused.
//
// # Ending early
//
// Cancelling the context cancels what is under way. Options.Drain is gentler: no
// step is begun any more, what is under way comes to its end within Options.Grace
// and is recorded, and the error is [ErrDrained].
//
// # Incremental runs
//
// Options.Reuse names an earlier run from which leaves that are stone.Reusable
// take their results if they read the same contents; [AnyRun] stands for all
// runs, and by default nothing is reused. [Diff] says which nodes differ between
// two runs, and why.
//
// # Budgets
//
// A budget holds for a run, however often it is resumed. A run that is resumed
// charges the account of its context (package budget) with what it has cost
// before: what its steps have used up, failed attempts included, and what each
// attempt without a result had declared. A step that is recorded costs nothing
// more. Time is not carried over: it runs from when the account was opened.
//
// # Secrets
//
// A node's id stands for its content, so a secret cannot be taken out of a record
// afterwards. It is taken out before: the recorder replaces the values in Options.Secrets,
// and those that a body names with [Secret], in everything that a step returns by
// "sha256:" and 8 hexadecimal digits, before there is a node. The DAG, the steps
// behind it and the journal see the digest only, in this run as in a resumed one.
// A secret therefore crosses no step: read it where it is used. Names and paths
// of steps are not searched. An input DAG that holds a secret is refused. Failures
// that the run makes itself, and the events of the run, are cleaned in the same
// way. Secrets are also found in JSON, in URLs and in base64.
package journal
