package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/step"
)

// A Journal records runs. Its methods are safe for concurrent use, and several processes may share its store. Times are only
// informative: no rule depends on a clock. Errors that this package does not declare describe the problem with the store and its
// remedy in one line. They match ErrUnavailable if a later call may succeed.
//
// Do acquires the run if necessary, so a Journal can also be the Recorder of stone.Run. Such a run consists only of steps and
// nodes, and may reuse results of any run. After a run has ended Done and until it is started again, Do only returns recorded
// results; for any other step the error is ErrDone.
type Journal interface {
	step.Recorder

	// Leases. If this Journal holds a run such as "exp", a run whose ID extends that run's ID, such as "exp/17", is an inner run
	// of it. The inner run is released no later than the outer run. Other processes see its records at the latest when the outer
	// run is released.

	// Acquire makes this Journal the holder of the run with the ID, which need not exist yet, and returns its RunInfo, which is
	// zero for a new run. The ID of a new run can be at most 512 bytes long. Acquire fails with a *HeldError while the run has
	// another live holder, even one in this process. Detecting that may take as long as a lease, but no longer than ctx allows.
	Acquire(ctx context.Context, id string) (RunInfo, error)
	// Begin records that the acquired run starts or continues. Its Outcome is then Running, with the Steps and Usage of r. All
	// other fields are taken from r. If the run had ended Failed, the failures of the steps listed in the old Outcome's Retry are
	// discarded, but still count in the Failures and Usage of these steps. The input, unless it is empty or already recorded,
	// becomes durable together with the start, as the result of the step InputStep. Begin refuses a name longer than 512 bytes,
	// more than 20 labels, and label names longer than 64 or values longer than 512 bytes, unless the run already has them.
	Begin(ctx context.Context, r RunInfo, input dag.DAG) error
	// End records how the run ended, with all nodes of its DAG, and releases the run. If End fails, the run is still held. A
	// Refused Outcome has no DAG: the run keeps the Heads and nodes of its previous Outcome.
	End(ctx context.Context, id string, o Outcome) error
	// Release releases a run that has not ended. It does nothing if this Journal does not hold the run.
	Release(id string) error
	// Held returns a context without values that is canceled when this Journal releases or loses the run. Its cause is a
	// *HeldError if the run has another holder, which the Journal may notice late. If the Journal does not hold the run, the
	// context is already canceled.
	Held(id string) context.Context
	// Settled is the optional method of a step.Recorder (see there). A new run becomes durable no later than its first record.
	Settled(id string) (wait func(now bool) error)

	// Lists of runs.

	// Find returns the run whose ID is prefix, or the only run whose ID begins with prefix. Find and Runs ignore an acquired run
	// until it has been started or has a step or a question. The error is ErrNoRun, or an *AmbiguousError.
	Find(ctx context.Context, prefix string) (RunInfo, error)
	// Runs returns a page of runs, newest first, without their Shape. A run whose stored description is damaged has the state
	// Damaged, in Runs and Find. It never meets a Query's conditions on cost or failure.
	Runs(ctx context.Context, q Query) ([]RunInfo, error)
	// Counts returns the number of selected runs for each pipeline and state. Of q it uses only States, Pipeline, Labels and
	// Asking. A damaged run counts with its stored state.
	Counts(ctx context.Context, q Query) ([]Count, error)
	// Balance returns the amount that all runs, including removed ones, have spent of a budget in the period that contains at, and
	// the amount that their running steps have reserved. The spending per day and month is kept for more than a year.
	//
	// The spending of an account on a day (UTC) is the cost in USD of the attempts that ended on that day in runs of the account,
	// and in inner runs of these that have no account. The estimates of lost attempts are added when their run ends or stops.
	Balance(ctx context.Context, b budget.Shared, at time.Time) (budget.Balance, error)
	// Remove deletes a run with all its records. Other runs keep the results that they have reused. The error for a held run is a
	// *HeldError.
	Remove(ctx context.Context, id string) error

	// Records of a run, which may still be running in this process or another one. A run that is not in the journal has no
	// records.

	// Steps returns the steps in the order in which they were first started. A reused step counts as started when its result was
	// recorded. The declared cost of a step is read from the context of Do, where the step's draw on an account stores it. If a
	// step declared a cost, its usage is read from the field "usage" of its content, or from the key "usage" in its failure's
	// meta.
	Steps(ctx context.Context, run string) ([]Step, error)
	// EachStep yields the same steps one at a time, with their Meta. For a run with a million steps it uses about 25 MB. It
	// ignores rows that are written while it runs. An error is yielded last.
	EachStep(ctx context.Context, run string) iter.Seq2[Step, error]
	// Record returns the result of a step of the run. The error is ErrNoStep if no step
	// with that path and kind has a result.
	Record(ctx context.Context, run, path, kind string) (step.Record, error)
	// DAG returns the nodes of a run: after its end, exactly the nodes of its DAG (its Heads with all ancestors); before that, the
	// nodes that its leaves created, with their ancestors. Parents come first. DAG checks the ID of every node; if a node was
	// changed, the error is a *DamageError.
	DAG(ctx context.Context, run string) (dag.DAG, error)
	// EachNode yields the same nodes as DAG one at a time, parents first, but possibly in another order. An error is yielded last.
	EachNode(ctx context.Context, run string) iter.Seq2[NodeInfo, error]

	// Parts of a run, for user interfaces that show large runs.

	// Follow yields the rows of a run after a position, or all rows if the position is 0. The rows are without contents. While any
	// process holds the run, Follow waits for new rows. It returns when the run has no holder and every row has been yielded. An
	// error is yielded last: ErrNoRun, the cause of ctx, or an error of the store. The caller may stop early and continue after
	// the Seq of its last row.
	Follow(ctx context.Context, run string, after int64) iter.Seq2[Row, error]
	// Changes yields once immediately, and then whenever any process has committed, until ctx is done or the caller stops. A read
	// after a yield sees the commit. Changes may also yield without a commit, because some stores can only be polled.
	Changes(ctx context.Context) func(yield func() bool)
	// Last returns a position at or after the last row of a run: from that position, Follow yields only new rows. The error is
	// ErrNoRun or an error of the store.
	Last(ctx context.Context, run string) (int64, error)
	// Outline returns a snapshot of the run's tree.
	Outline(ctx context.Context, run string) (Outline, error)
	// Node returns the node of the run whose ID, in hexadecimal digits, is prefix, or the only node whose ID begins with prefix.
	// It finds the nodes that steps created, their ancestors, and the nodes of the run's final DAG. The error is ErrNoNode or an
	// *AmbiguousError.
	Node(ctx context.Context, run, prefix string) (NodeInfo, error)

	// Questions and their answers. A question is identified by its run and its path.

	// Ask records a question if it is new, and returns the recorded question, with its answer if it has one. A question can be at
	// most 1 MiB long as JSON. If q has a Problem, Ask first replaces the text and withdraws the answer. Only the holder of the
	// run may withdraw an answer: if this Journal does not hold the run, the error is the cause of Held, and the answer is kept.
	Ask(ctx context.Context, q Question) (Question, error)
	// Answer answers a question. ErrNoQuestion means that no such question exists, or that it is already answered; ErrAsksOther
	// means that the question's version is no longer a.To. The response can be at most 1 MiB long.
	Answer(ctx context.Context, run, path string, a ask.Answer) error
	// Questions returns the questions of a run in the order in which they were first
	// asked.
	Questions(ctx context.Context, run string) ([]Question, error)
	// EachQuestion yields the questions that q selects, oldest first. It keeps only a few of them in memory. For several runs it
	// skips damaged questions; for a single run it yields a *DamageError. An error is yielded last.
	EachQuestion(ctx context.Context, q QuestionQuery) iter.Seq2[Question, error]
	// CountQuestions returns the number of selected questions, including damaged ones. Of q it uses only Run, Labels, Path and
	// Open.
	CountQuestions(ctx context.Context, q QuestionQuery) (int, error)
}

// A State is the state of a run.
type State string

// The states of a run.
const (
	Running     State = "running"     // as far as is known, a process holds the run
	Waiting     State = "waiting"     // waiting for an answer: answer the question and resume the run
	Answered    State = "answered"    // waiting, but every question has been answered
	Done        State = "done"        // ended with a result
	Failed      State = "failed"      // failed; resuming the run retries it
	Canceled    State = "canceled"    // canceled by its user
	Drained     State = "drained"     // its process was stopped: see Options.Drain
	Interrupted State = "interrupted" // its process died, or could not record how the run ended
	Refused     State = "refused"     // a server could not continue it because its pipeline changed: see Options.Refuse
	Damaged     State = "damaged"     // the record of its start or end was altered: Failure describes the damage; the run can be removed
)

// RunInfo describes a run, without its steps.
type RunInfo struct {
	ID       string `json:"id"`
	Pipeline string `json:"pipeline"` // name of the pipeline, for people
	// Source lets the caller rebuild the pipeline. The journal does not read it.
	Source      json.RawMessage   `json:"source,omitempty"`
	Fingerprint dag.ID            `json:"fingerprint,omitzero"`
	Shape       []Part            `json:"shape,omitempty"`    // description of the pipeline
	Revision    string            `json:"revision,omitempty"` // version of the program in version control
	Labels      map[string]string `json:"labels,omitempty"`
	Reuse       string            `json:"reuse,omitempty"`   // see Options.Reuse
	Fork        *Fork             `json:"fork,omitempty"`    // see Options.Fork; Run is a complete ID here
	Account     string            `json:"account,omitempty"` // see Options.Account
	Budgets     []budget.Shared   `json:"budgets,omitempty"` // see Options.Budgets
	Notify      []string          `json:"notify,omitempty"`  // see Options.Notify
	Input       dag.ID            `json:"input,omitzero"`    // digest of the input DAG; zero for an empty DAG

	Again []Again `json:"again,omitempty"` // steps repeated with Options.Again

	// Attempt is 0 until the run is first resumed after it was done, failed or canceled. Then it is 2, and grows by 1 with each
	// further such resumption.
	Attempt int `json:"attempt,omitempty"`

	Owner   string    `json:"owner,omitempty"`  // the holder; empty if there is none
	Started time.Time `json:"started,omitzero"` // time of the first start
	Outcome
}

// Again is a step that a resumed run repeated: see Options.Again. An empty path stands for the run's input, which was replaced
// with Options.Force.
type Again struct {
	Path string    `json:"path,omitempty"`
	Time time.Time `json:"time"` // earlier records of the step, and of steps that read its result, do not count
}

// Outcome describes how a run last ended.
type Outcome struct {
	State   State          `json:"state"`
	Ended   time.Time      `json:"ended,omitzero"`
	Failure *Failure       `json:"failure,omitempty"`
	Retry   []string       `json:"retry,omitempty"`   // paths of the steps that are retried when the failed run is resumed
	Node    dag.ID         `json:"node,omitzero"`     // the last node: the result or the failure
	Heads   []dag.ID       `json:"heads,omitempty"`   // heads of the run's DAG; set by End
	Steps   int            `json:"steps"`             // number of steps with a result
	Usage   budget.Total   `json:"usage"`             // cost of all steps
	Lanes   dag.Losses     `json:"lanes,omitzero"`    // number of lost lanes, and of all lanes in fan-outs that lost any
	Notices []event.Notice `json:"notices,omitempty"` // notices from the last process
	DAG     dag.DAG        `json:"-"`                 // used only by End
}

// Failure explains why a run or a step ended without a result.
type Failure struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
	Path   string `json:"path,omitempty"`
}

// Step describes a step of a run.
type Step struct {
	Path string `json:"path"` // Path, Kind and Name are as in step.Key
	Kind string `json:"kind"` // or "input" for the input DAG
	Name string `json:"name"`
	// Attempts is the number of times the step's work was started; it is 0 if the result comes from another run. If the step is
	// not Recorded, the last attempt is still running, or was running when its process ended or lost the run.
	Attempts int          `json:"attempts"`
	Failures int          `json:"failures,omitempty"` // attempts that ended without a result: their failure was discarded (see Journal.Begin), or their cost is known
	Recorded bool         `json:"recorded"`
	From     string       `json:"from,omitempty"`    // ID of the run from which the result was reused
	Time     time.Time    `json:"time,omitzero"`     // time of the result; see step.Record
	Started  time.Time    `json:"started,omitzero"`  // start of the last attempt
	Ended    time.Time    `json:"ended,omitzero"`    // time when the result was recorded
	Type     string       `json:"type,omitempty"`    // type of the node
	Node     dag.ID       `json:"node,omitzero"`     // the node that the step created, or zero
	Sum      dag.ID       `json:"sum,omitzero"`      // hash of type and content; see step.Record
	Failure  string       `json:"failure,omitempty"` // kind of the step's failure, or empty
	Reason   string       `json:"reason,omitempty"`  // reason of the failure
	Usage    budget.Usage `json:"usage,omitzero"`    // usage of all attempts that have ended
	// Declared is the estimated cost of one attempt, declared when the attempt drew on an account. It is zero for a step without
	// cost.
	Declared budget.Amount `json:"declared,omitzero"`
	// Possible sums up the attempts that declared a cost but have neither a result nor a known cost. It is not set in an Outline.
	Possible budget.Possible   `json:"possible,omitzero"`
	Meta     map[string]string `json:"-"` // meta of the result; set only by EachStep
}

// Start records that an attempt starts. Start and Settle are meant for implementations of Journal.
func (s *Step) Start(declared budget.Amount) {
	s.Attempts, s.Declared, s.Possible = s.Attempts+1, declared, s.Possible.Start(declared)
}

// Settle records the usage of the last attempt when it has ended.
func (s *Step) Settle(used budget.Usage) {
	s.Usage, s.Possible = s.Usage.Add(used), s.Possible.End(s.Declared)
}

// PossiblyPaid returns the number of attempts that have neither a result nor a failure, and so may have been billed.
func (s Step) PossiblyPaid() int {
	n := s.Attempts - s.Failures
	if s.Recorded {
		n--
	}
	return max(n, 0)
}

// Question is an ask.Question as a journal stores it.
type Question struct {
	Run      string          `json:"run"`
	Path     string          `json:"path"`
	Name     string          `json:"name"`
	Text     string          `json:"text"`
	Choices  []string        `json:"choices,omitempty"`
	Schema   json.RawMessage `json:"schema,omitempty"`
	Problem  string          `json:"problem,omitempty"`  // reason why the previous answer was rejected
	Asked    time.Time       `json:"asked"`              // time when it was first asked
	Answered time.Time       `json:"answered,omitzero"`  // zero while the question is open
	Response string          `json:"response,omitempty"` // also empty if the question was canceled
	By       string          `json:"by,omitempty"`       // name of the person who answered; empty if unknown
	Version  string          `json:"version,omitempty"`  // see ask.Question.Version
	Call     *ask.Call       `json:"call,omitempty"`     // tool call that the answer approves or refuses
	Given    time.Time       `json:"given,omitzero"`     // for a standing answer, the time when the earlier question was answered
	Due      time.Time       `json:"due,omitzero"`       // deadline after which Default is the answer
	Default  string          `json:"default,omitempty"`
	Standing []string        `json:"standing,omitempty"` // choices that also answer later questions: see ask.Question.Standing
}

// Open reports whether the question has no answer yet.
func (q Question) Open() bool { return q.Answered.IsZero() }

var (
	// ErrUnavailable means that the store cannot be read or written at the moment, but may be usable later: its server does not
	// respond or has no free connection, its file is locked, or its disk is full. The store has already retried. Test for
	// ErrUnavailable with errors.Is; the returned error contains the details.
	ErrUnavailable = errors.New("the store is not available now: try again later")
	// ErrGone means that the store was removed or replaced while it was in use, so its runs cannot be resumed.
	ErrGone = errors.New("the store is gone")
	// ErrClosed is returned by every method of a store after Close.
	ErrClosed = errors.New("the journal is closed: open it again")
	// ErrNoRun means that no run has the given ID.
	ErrNoRun = errors.New("no such run: list the runs to see their names")
	// ErrNoStep means that the run has no such step with a result.
	ErrNoStep = errors.New("no such step with a result")
	// ErrNoInput means that the input with which a run was started is not in the journal.
	ErrNoInput = errors.New("the input of the run is not recorded: start the run again with the same id and input")
	// ErrDone means that a replayed run, which is already done, reached a step that it has no record of, so the pipeline must have
	// changed.
	ErrDone = errors.New("the run is done and has no record of this step: force the run to resume if the step should run")
	// ErrNoQuestion means that no such question is open.
	ErrNoQuestion = errors.New("no such question is open")
	// ErrAnswered means that the question has already been answered. It matches ErrNoQuestion.
	ErrAnswered error = &noQuestion{"the question is answered", ErrNoQuestion}
	// ErrAsksOther means that the question has changed since it was read. It matches ErrNoQuestion.
	ErrAsksOther error = &noQuestion{"the question has changed since it was shown: read it again", ErrNoQuestion}
	// ErrDrained means that the run was stopped by Options.Drain.
	ErrDrained = errors.New("stopped before its end: resume the run to continue")
)

// AnswerError reports why an answer was refused: the question does not accept it, or several questions match.
type AnswerError struct{ Err error }

func (e *AnswerError) Error() string { return e.Err.Error() }
func (e *AnswerError) Unwrap() error { return e.Err }

// HeldError reports that the run is held by another holder.
type HeldError struct {
	Where string // name of the store, such as "database stone.db"
	Run   string
	Owner string // in the form "host/pid/nonce"
}

// Error names the holder of the run.
func (e *HeldError) Error() string {
	return fmt.Sprintf("run %q in %s is held by %s: wait until that ends, or end it", e.Run, e.Where, text.Process(e.Owner))
}

// AmbiguousError reports that the IDs of several runs, or of several nodes of a run, begin with a prefix.
type AmbiguousError struct {
	Prefix string
	Run    string   // the run that contains the nodes; empty if Found lists runs
	Found  []string // some of the matching IDs
}

// Error lists the first few of the IDs.
func (e *AmbiguousError) Error() string {
	const most = 5
	ids := strings.Join(e.Found[:min(len(e.Found), most)], ", ")
	if len(e.Found) > most {
		ids += ", …"
	}
	if e.Run != "" {
		return fmt.Sprintf("several nodes of run %q begin with %q: %s: give more of the id", e.Run, e.Prefix, ids)
	}
	return fmt.Sprintf("several runs begin with %q: %s: give more of the name", e.Prefix, ids)
}

// DamageError reports that a record was changed or lost after it was written.
type DamageError struct {
	Where, Run string // Run is empty if the database itself is damaged
	Path       string // path of the step; empty for a node that no step created
	Node       string // ID of the node; empty if the record has no node
	Reason     string
}

// Error names the damaged record and suggests what to do.
func (e *DamageError) Error() string {
	what := "its record"
	if e.Path != "" {
		what = "the record of " + e.Path
	}
	if e.Node != "" {
		what += fmt.Sprintf(" (node %.12s)", e.Node)
	}
	if e.Run == "" {
		return fmt.Sprintf("%s %s: restore a copy of it", e.Where, e.Reason)
	}
	return fmt.Sprintf("run %q in %s: %s %s: restore a copy of it, or start a new run", e.Run, e.Where, what, e.Reason)
}

// ChangedError reports that a run was to be resumed with a different input, or with a pipeline that differs in parts that the run
// has already reached.
type ChangedError struct {
	Run     string
	Changes []string // descriptions of the changes
}

// Error lists the changes.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("run %q was started with another pipeline or input: %s: start a new run, or force this one to resume with what is unchanged", e.Run, strings.Join(e.Changes, "; "))
}
