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

// A Journal records runs. Its methods may be called by several goroutines, and several processes may share its store. Times are
// for people: no rule depends on a clock. Errors other than this package's describe in one line the problem with the store and
// its remedy. They match ErrUnavailable if a later call may succeed.
//
// Do acquires the run if necessary, so a Journal can also be the Recorder of stone.Run. Such a run has only steps and nodes, and
// may reuse results of any run. Between the end of a run that is Done and its next start, Do only returns recorded results; for
// any other step the error is ErrDone.
type Journal interface {
	step.Recorder

	// Leases. A run whose id extends the id of a run held by this Journal, as "exp/17" extends "exp", is an inner run. It is
	// released no later than the outer run. Other processes see its records when the outer run is released, or earlier.

	// Acquire takes the run with the id, which need not exist yet, and returns its RunInfo, which is zero for a new run. The id
	// of a new run can be at most 512 bytes long. Acquire fails with a *HeldError while another holder lives, even in this
	// process. Detecting that may take as long as a lease, but no longer than ctx.
	Acquire(ctx context.Context, id string) (RunInfo, error)
	// Begin records that the acquired run starts or continues. Its Outcome is then Running, with the Steps and Usage of r. All
	// other fields are taken from r. If the run had ended Failed, the failures of the steps in that Outcome's Retry are
	// forgotten; Steps still counts them in Failures and Usage. The input, unless it is empty or already recorded, becomes
	// durable together with the start, as the result of the step InputStep. Begin refuses a name longer than 512 bytes, more than
	// 20 labels, and label names longer than 64 or values longer than 512 bytes, unless the run already has them.
	Begin(ctx context.Context, r RunInfo, input dag.DAG) error
	// End records how the run ended, with all nodes of its DAG, and releases the run. If End fails, the run is still held. A
	// Refused Outcome has no DAG: the Heads and nodes of the previous one stay.
	End(ctx context.Context, id string, o Outcome) error
	// Release releases a run that has not ended. It does nothing if this Journal does not hold the run.
	Release(id string) error
	// Held returns a context that ends when this Journal releases or loses the run. The context has no values. Its cause is a
	// *HeldError if another holder has the run, which the Journal may notice late. If the run is not held, the context has
	// already ended.
	Held(id string) context.Context
	// Settled is the optional method of a step.Recorder. A new run becomes durable no later than its first record.
	Settled(id string) (wait func(now bool) error)

	// Lists of runs.

	// Find returns the run with the id, or the only one whose id begins with prefix. Find and Runs ignore an acquired run until
	// it is started or has a step or a question. The error is ErrNoRun, or an *AmbiguousError.
	Find(ctx context.Context, prefix string) (RunInfo, error)
	// Runs returns a page of runs, the newest first, without their Shape. A run with damaged facts is Damaged, here and in Find.
	// It meets no condition of a Query about cost or failure.
	Runs(ctx context.Context, q Query) ([]RunInfo, error)
	// Counts counts the runs that q selects by States, Pipeline, Labels and Asking, by pipeline and state. A damaged run counts
	// with its stored state.
	Counts(ctx context.Context, q Query) ([]Count, error)
	// Balance returns what all runs, including removed ones, have spent on a budget in the period that contains at, and what
	// their running steps have reserved. Days and months are kept for more than a year.
	//
	// The spending of an account on a day (UTC) is the cost in USD of the attempts of its runs, and of their inner runs without
	// an account, that ended on that day. The estimates of lost attempts are added when their run ends or stops.
	Balance(ctx context.Context, b budget.Shared, at time.Time) (budget.Balance, error)
	// Remove deletes a run with all its records. Other runs keep the results that they have reused. The error for a held run is a
	// *HeldError.
	Remove(ctx context.Context, id string) error

	// Records of a run, which may still be running in this process or another one. A run that the journal does not have is empty.

	// Steps returns the steps in the order in which they were first started. A reused step counts as started when its result was
	// recorded. The declared cost of a step is the cost in the context of Do, from its draw on an account. If it declared one,
	// its usage is in the field "usage" of its content, or in the meta of its failure under "usage".
	Steps(ctx context.Context, run string) ([]Step, error)
	// EachStep yields the same steps one at a time, with their Meta. For a run of a million steps it uses about 25 MB. It ignores
	// rows written meanwhile. An error is yielded last.
	EachStep(ctx context.Context, run string) iter.Seq2[Step, error]
	// Record returns the result of a step of the run. The error is ErrNoStep if no step
	// with that path and kind has a result.
	Record(ctx context.Context, run, path, kind string) (step.Record, error)
	// DAG returns the nodes of a run: after its end, exactly the nodes of its DAG (its Heads with all ancestors); before that,
	// the nodes that its leaves created, with their ancestors. Parents come first. The id of every node is checked; a changed
	// node is a *DamageError.
	DAG(ctx context.Context, run string) (dag.DAG, error)
	// EachNode yields the nodes of DAG one at a time, parents first, perhaps in another order. It is to
	// DAG what EachStep is to Steps.
	EachNode(ctx context.Context, run string) iter.Seq2[NodeInfo, error]

	// Parts of a run, for pages that show large runs.

	// Follow yields the rows of a run after a position, 0 for all, without contents. While any process holds the run, it waits
	// for more. It returns when the run has no holder and every row was yielded. An error is yielded last: ErrNoRun, the cause of
	// ctx, or an error of the store. The caller may stop early and continue after the Seq of its last row.
	Follow(ctx context.Context, run string, after int64) iter.Seq2[Row, error]
	// Changes yields immediately, and then after commits of any process, until ctx is done or the caller stops. A read after that
	// sees the commit. It may also yield without a commit, because some stores only poll.
	Changes(ctx context.Context) func(yield func() bool)
	// Last returns a position at or after the last row of a run: Follow from there yields only
	// new rows. The error is ErrNoRun or an error of the store.
	Last(ctx context.Context, run string) (int64, error)
	// Outline returns the current tree of a run.
	Outline(ctx context.Context, run string) (Outline, error)
	// Node returns the node of the run with the id in hexadecimal digits, or the only one
	// whose id begins with prefix. It finds the nodes that steps made, their ancestors,
	// and the nodes of the DAG at the end of the run. The error is ErrNoNode or an
	// *AmbiguousError.
	Node(ctx context.Context, run, prefix string) (NodeInfo, error)

	// Questions and their answers. A question is identified by its run and its path.

	// Ask records a question if it is new, and returns it with its answer, if it has one. As JSON, a question can be at most 1
	// MiB. If q has a Problem, Ask first replaces the text and withdraws the answer. Only the holder of the run may do that: if
	// this Journal does not hold it, the error is the cause of Held and the answer stays.
	Ask(ctx context.Context, q Question) (Question, error)
	// Answer answers a question. ErrNoQuestion means that no such question exists, or that it is already answered; ErrAsksOther
	// means that the question's version is no longer a.To. The response can be at most 1 MiB.
	Answer(ctx context.Context, run, path string, a ask.Answer) error
	// Questions returns the questions of a run in the order in which they were first
	// asked.
	Questions(ctx context.Context, run string) ([]Question, error)
	// EachQuestion yields the questions that q selects, oldest first, and keeps few in memory. For several runs it skips damaged
	// questions; for a single run it yields a *DamageError. An error is yielded last.
	EachQuestion(ctx context.Context, q QuestionQuery) iter.Seq2[Question, error]
	// CountQuestions counts the questions that q selects by Run, Labels, Path and Open, including damaged ones.
	CountQuestions(ctx context.Context, q QuestionQuery) (int, error)
}

// A State is the state of a run.
type State string

// The states of a run.
const (
	Running     State = "running"     // a process holds it, as far as is known
	Waiting     State = "waiting"     // waits for an answer: answer it and resume the run
	Answered    State = "answered"    // every question of a waiting run has its answer
	Done        State = "done"        // with a result
	Failed      State = "failed"      // failed; resuming the run retries it
	Canceled    State = "canceled"    // canceled by its user
	Drained     State = "drained"     // its process was stopped, see Options.Drain
	Interrupted State = "interrupted" // its process died without reporting, or could not write how the run ended
	Refused     State = "refused"     // a server could not continue it because its pipeline changed: see Options.Refuse
	Damaged     State = "damaged"     // the record of its start or end was changed; see its Failure; it can be removed
)

// RunInfo describes a run, without its steps.
type RunInfo struct {
	ID       string `json:"id"`
	Pipeline string `json:"pipeline"` // a name for people
	// Source lets the caller rebuild the pipeline. The journal does not read it.
	Source      json.RawMessage   `json:"source,omitempty"`
	Fingerprint dag.ID            `json:"fingerprint,omitzero"`
	Shape       []Part            `json:"shape,omitempty"`    // of the pipeline
	Revision    string            `json:"revision,omitempty"` // version of the program in version control
	Labels      map[string]string `json:"labels,omitempty"`
	Reuse       string            `json:"reuse,omitempty"`   // as in Options
	Fork        *Fork             `json:"fork,omitempty"`    // as in Options, with the whole id
	Account     string            `json:"account,omitempty"` // as in Options
	Budgets     []budget.Shared   `json:"budgets,omitempty"` // as in Options
	Notify      []string          `json:"notify,omitempty"`  // as in Options
	Input       dag.ID            `json:"input,omitzero"`    // digest of the input DAG, zero for an empty one

	Again []Again `json:"again,omitempty"` // deliberately repeated steps

	// Attempt is 0 until the run is first resumed after an end (done, failed or canceled), then 2, and so on.
	Attempt int `json:"attempt,omitempty"`

	Owner   string    `json:"owner,omitempty"`  // the holder, or empty
	Started time.Time `json:"started,omitzero"` // first
	Outcome
}

// Again is a step that a resumed run repeated: see Options.Again. An empty path means the input, replaced by force.
type Again struct {
	Path string    `json:"path,omitempty"`
	Time time.Time `json:"time"` // earlier records of the step, and of the steps that read it, do not count
}

// Outcome describes how a run last ended.
type Outcome struct {
	State   State          `json:"state"`
	Ended   time.Time      `json:"ended,omitzero"`
	Failure *Failure       `json:"failure,omitempty"`
	Retry   []string       `json:"retry,omitempty"`   // paths of the steps to retry when a failed run is resumed
	Node    dag.ID         `json:"node,omitzero"`     // the last node: the result, or the failure
	Heads   []dag.ID       `json:"heads,omitempty"`   // heads of the DAG; set by End
	Steps   int            `json:"steps"`             // steps with a result
	Usage   budget.Total   `json:"usage"`             // of all steps
	Lanes   dag.Losses     `json:"lanes,omitzero"`    // lost lanes, and all lanes of fan-outs that lost any
	Notices []event.Notice `json:"notices,omitempty"` // of the last process
	DAG     dag.DAG        `json:"-"`                 // for End only
}

// Failure explains why a run or a step ended without a result.
type Failure struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
	Path   string `json:"path,omitempty"`
}

// Step describes a step of a run.
type Step struct {
	Path string `json:"path"` // this and the next two are as in step.Key
	Kind string `json:"kind"` // also "input", for the input DAG
	Name string `json:"name"`
	// Attempts is the number of times its work was started, 0 if its result comes from another run. If the step is not Recorded,
	// the last attempt is running, or was running when its process ended or gave up.
	Attempts int          `json:"attempts"`
	Failures int          `json:"failures,omitempty"` // ended attempts without a result: with a forgotten failure, see Begin, or a known cost
	Recorded bool         `json:"recorded"`
	From     string       `json:"from,omitempty"`    // run from which the result was reused
	Time     time.Time    `json:"time,omitzero"`     // time of the result, as in step.Record
	Started  time.Time    `json:"started,omitzero"`  // the last attempt
	Ended    time.Time    `json:"ended,omitzero"`    // time of recording
	Type     string       `json:"type,omitempty"`    // of the node
	Node     dag.ID       `json:"node,omitzero"`     // the node that it made, or zero
	Sum      dag.ID       `json:"sum,omitzero"`      // hash of type and content, as in step.Record
	Failure  string       `json:"failure,omitempty"` // kind of its failure
	Reason   string       `json:"reason,omitempty"`  // of the failure
	Usage    budget.Usage `json:"usage,omitzero"`    // usage of the result and all failures
	// Declared is the estimated cost of an attempt, as declared when it drew on an account; zero for a
	// step without cost.
	Declared budget.Amount `json:"declared,omitzero"`
	// Possible sums up attempts that declared a cost and have neither a result nor a known cost. An Outline omits it.
	Possible budget.Possible   `json:"possible,omitzero"`
	Meta     map[string]string `json:"-"` // meta of the result, set only by EachStep
}

// Start notes that an attempt starts. Start and Settle are for implementations of Journal.
func (s *Step) Start(declared budget.Amount) {
	s.Attempts, s.Declared, s.Possible = s.Attempts+1, declared, s.Possible.Start(declared)
}

// Settle notes the usage of the last attempt after its end.
func (s *Step) Settle(used budget.Usage) {
	s.Usage, s.Possible = s.Usage.Add(used), s.Possible.End(s.Declared)
}

// PossiblyPaid returns the number of attempts that have neither a result nor a failure,
// though their work may have cost something.
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
	Problem  string          `json:"problem,omitempty"`  // reason why the previous answer was not accepted
	Asked    time.Time       `json:"asked"`              // first
	Answered time.Time       `json:"answered,omitzero"`  // zero while it is open
	Response string          `json:"response,omitempty"` // also empty if the question was cancelled
	By       string          `json:"by,omitempty"`       // author of the answer; empty if unknown
	Version  string          `json:"version,omitempty"`  // see ask.Question.Version
	Call     *ask.Call       `json:"call,omitempty"`     // the tool call that the answer approves or refuses
	Given    time.Time       `json:"given,omitzero"`     // for a standing answer: time of the answer to the earlier question
	Due      time.Time       `json:"due,omitzero"`       // when Default answers it
	Default  string          `json:"default,omitempty"`
	Standing []string        `json:"standing,omitempty"` // choices that also answer later questions, see ask.Question.Standing
}

// Open reports whether the question waits for an answer.
func (q Question) Open() bool { return q.Answered.IsZero() }

var (
	// ErrUnavailable means that the store cannot be read or written now, though it may be later:
	// its server does not answer or has no free connection, its file is locked, its disk is full.
	// The store has retried already. Test for it with errors.Is; the error itself says more.
	ErrUnavailable = errors.New("the store is not available now: try again later")
	// ErrGone means that the store was removed or replaced while it was in use, so that runs in it
	// cannot be resumed.
	ErrGone = errors.New("the store is gone")
	// ErrClosed is the error of every use of a store after Close.
	ErrClosed = errors.New("the journal is closed: open it again")
	// ErrNoRun means that no run has the id.
	ErrNoRun = errors.New("no such run: list the runs to see their names")
	// ErrNoStep means that the run has no result of such a step.
	ErrNoStep = errors.New("no such step with a result")
	// ErrNoInput means that the journal lacks the input with which a run was started.
	ErrNoInput = errors.New("the input of the run is not recorded: start the run again with the same id and input")
	// ErrDone means that a completed run has no record of a step, so its pipeline now does different work.
	ErrDone = errors.New("the run is done and has no record of this step: force the run to resume if the step should run")
	// ErrNoQuestion means that no such question is open.
	ErrNoQuestion = errors.New("no such question is open")
	// ErrAnswered is the ErrNoQuestion of a question that is already answered.
	ErrAnswered error = &noQuestion{"the question is answered", ErrNoQuestion}
	// ErrAsksOther is the ErrNoQuestion of a question that has changed since it was read.
	ErrAsksOther error = &noQuestion{"the question has changed since it was shown: read it again", ErrNoQuestion}
	// ErrDrained is the error of a run that was stopped by Options.Drain.
	ErrDrained = errors.New("stopped before its end: resume the run to continue")
)

// AnswerError reports why an answer was refused: the question does not accept it, or several questions match.
type AnswerError struct{ Err error }

func (e *AnswerError) Error() string { return e.Err.Error() }
func (e *AnswerError) Unwrap() error { return e.Err }

// HeldError reports that another holder has the run.
type HeldError struct {
	Where string // the store, such as "database stone.db"
	Run   string
	Owner string // as "host/pid/nonce"
}

// Error names the owner.
func (e *HeldError) Error() string {
	return fmt.Sprintf("run %q in %s is held by %s: wait until that ends, or end it", e.Run, e.Where, text.Process(e.Owner))
}

// AmbiguousError reports that several runs, or several nodes of a run, begin with a
// prefix.
type AmbiguousError struct {
	Prefix string
	Run    string   // the run of the nodes, empty if Found lists runs
	Found  []string // some of the ids
}

// Error names the first of the ids.
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
	Path       string // path of the step, empty for a node that no step made
	Node       string // id of the node, empty if the record has none
	Reason     string
}

// Error names the place and what to do.
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

// ChangedError reports that a run was started with another input, or with a pipeline that differs in parts that the run has
// passed.
type ChangedError struct {
	Run     string
	Changes []string // what changed, in words
}

// Error lists the changes.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("run %q was started with another pipeline or input: %s: start a new run, or force this one to resume with what is unchanged", e.Run, strings.Join(e.Changes, "; "))
}
