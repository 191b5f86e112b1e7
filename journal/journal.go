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

// A Journal records runs. Its methods are safe for concurrent use, and several processes may share its store. Recorded times are
// only informative: no rule depends on a clock. All errors that this package does not declare describe, on one line, a problem with
// the store and its remedy. They match ErrUnavailable if a later call may succeed.
//
// Do acquires the run if necessary, so a Journal can also be the Recorder of stone.Run. Such a run consists only of steps and
// nodes, and may reuse results of any run. After a run has ended Done, and until it is started again, Do returns only recorded
// results. For a step without a recorded result, the error is ErrDone.
type Journal interface {
	step.Recorder

	// Leases. If this Journal holds a run such as "exp", a run whose ID extends that run's ID, such as "exp/17", is an inner run
	// of it. The inner run is released no later than the outer run. Other processes see its records at the latest when the outer
	// run is released.

	// Acquire makes this Journal the holder of the run with the given ID, and returns its RunInfo, which is zero for a new run. The
	// ID of a new run can be at most 512 bytes long. If the run has another live holder, even in this process, the error is a
	// *HeldError. Finding out whether a holder is alive may take as long as a lease, but no longer than ctx allows.
	Acquire(ctx context.Context, id string) (RunInfo, error)
	// Begin records that the acquired run starts or continues. The run's Outcome then has the State Running and the Steps and Usage
	// of r. All fields outside Outcome are taken from r. If the run had ended Failed, Begin discards the failures of the steps
	// listed in Retry of the old Outcome. They still count in the Failures and Usage of these steps. Unless the input is empty or
	// already recorded, it becomes durable together with the start, as the result of the step InputStep. Begin refuses a name
	// longer than 512 bytes, more than 20 labels, and label names longer than 64 or values longer than 512 bytes, unless the run
	// already has them.
	Begin(ctx context.Context, r RunInfo, input dag.DAG) error
	// End records how the run ended, together with all nodes of its DAG, and releases the run. If End fails, this Journal still
	// holds the run. A Refused Outcome has no DAG: the run keeps the Heads and nodes of its previous Outcome.
	End(ctx context.Context, id string, o Outcome) error
	// Release releases a run that has not ended. It does nothing if this Journal does not hold the run.
	Release(id string) error
	// Held returns a context without values that is canceled when this Journal releases or loses the run. If the Journal does not
	// hold the run, the context is already canceled. If the run has another holder, which the Journal may notice late, the cause is
	// a *HeldError.
	Held(id string) context.Context
	// Settled is an optional method of step.Recorder; see there. A new run becomes durable no later than its first record.
	Settled(id string) (wait func(now bool) error)

	// Lists of runs.

	// Find returns the run whose ID is prefix, or the only run whose ID begins with prefix. Find and Runs ignore an acquired run
	// until it has been started or has a step or a question. If there is no such run, the error is ErrNoRun; if there are several,
	// an *AmbiguousError.
	Find(ctx context.Context, prefix string) (RunInfo, error)
	// Runs returns a page of runs, newest first, without their Shape. If the stored description of a run is damaged, Runs and Find
	// return the run with the state Damaged. Such a run never meets the conditions of a Query on cost or failure.
	Runs(ctx context.Context, q Query) ([]RunInfo, error)
	// Counts returns the number of runs that q selects, for each pipeline and state. It uses only the fields States, Pipeline,
	// Labels and Asking of q. It counts a damaged run under its stored state.
	Counts(ctx context.Context, q Query) ([]Count, error)
	// Balance returns the amount that all runs, including removed ones, have spent of a budget in the period that contains at, and
	// the amount that their running steps have reserved. The spending per day and month is kept for more than a year.
	//
	// The spending of an account on a day (UTC) is the cost in USD of the attempts that ended on that day in runs of the account,
	// and in inner runs of these that have no account. The estimates of lost attempts are added when their run ends or stops.
	Balance(ctx context.Context, b budget.Shared, at time.Time) (budget.Balance, error)
	// Remove deletes a run with all its records. Other runs keep the results that they have reused from it. If the run is held, the
	// error is a *HeldError.
	Remove(ctx context.Context, id string) error

	// The following methods read the records of a run, which may still be running in this process or in another one. A run that is
	// not in the journal has no records.

	// Steps returns the steps in the order in which they were first started. A reused step counts as started when its result was
	// recorded. The declared cost of a step comes from the context passed to Do, in which the step's draw on an account has stored
	// it. If a step declared a cost, its usage is read from the field "usage" of its content, or from the key "usage" in its
	// failure's meta.
	Steps(ctx context.Context, run string) ([]Step, error)
	// EachStep yields the same steps as Steps, one at a time and with their Meta. For a run with a million steps, it uses about 25
	// MB. It ignores rows that are written while it runs. If an error occurs, EachStep yields it last.
	EachStep(ctx context.Context, run string) iter.Seq2[Step, error]
	// Record returns the result of the run's step with the given path and kind. If there is no such step with a result, the error
	// is ErrNoStep.
	Record(ctx context.Context, run, path, kind string) (step.Record, error)
	// DAG returns the nodes of a run: after its end, exactly the nodes of its DAG (its Heads with all ancestors); before that, the
	// nodes that its leaves created, with their ancestors. Parents come first. DAG checks the ID of every node; if a node was
	// changed, the error is a *DamageError.
	DAG(ctx context.Context, run string) (dag.DAG, error)
	// EachNode yields the same nodes as DAG, one at a time and parents first, but possibly in a different order. If an error
	// occurs, EachNode yields it last.
	EachNode(ctx context.Context, run string) iter.Seq2[NodeInfo, error]

	// The following methods read parts of a run. They are meant for user interfaces that show large runs.

	// Follow yields the rows of a run after a position, or all rows if the position is 0. The rows have no contents. While any
	// process holds the run, Follow waits for new rows. It returns when the run has no holder and all rows have been yielded. If an
	// error occurs, Follow yields it last: ErrNoRun, the cause of ctx, or an error of the store. The caller may stop early and
	// later continue after the Seq of the last row that it received.
	Follow(ctx context.Context, run string, after int64) iter.Seq2[Row, error]
	// Changes yields once immediately, and then each time any process has committed a write, until ctx is done or the caller stops.
	// A read after a yield sees the write. Changes may also yield if nothing was written, because some stores can only be polled.
	Changes(ctx context.Context) func(yield func() bool)
	// Last returns a position at or after the last row of a run: from that position, Follow yields only new rows. The error is
	// ErrNoRun or an error of the store.
	Last(ctx context.Context, run string) (int64, error)
	// Outline returns a snapshot of the run's tree.
	Outline(ctx context.Context, run string) (Outline, error)
	// Node returns the node of the run whose ID, in hexadecimal digits, is prefix, or the only node whose ID begins with prefix. It
	// finds the nodes that steps created, their ancestors, and the nodes of the run's final DAG. If there is no such node, the
	// error is ErrNoNode; if there are several, an *AmbiguousError.
	Node(ctx context.Context, run, prefix string) (NodeInfo, error)

	// The following methods read and write questions and their answers. A question is identified by its run and its path.

	// Ask records a question if it is new, and returns the recorded question, with its answer if it has one. A question can be at
	// most 1 MiB long as JSON. If q has a Problem, Ask first replaces the text and withdraws the answer. Only the holder of the
	// run may withdraw an answer: if this Journal does not hold the run, the error is the cause of Held, and the answer is kept.
	Ask(ctx context.Context, q Question) (Question, error)
	// Answer records the answer a to the question at path. If there is no such question, or if it has already been answered, the
	// error is ErrNoQuestion. If the question's version is no longer a.To, the error is ErrAsksOther. The response can be at most 1
	// MiB long.
	Answer(ctx context.Context, run, path string, a ask.Answer) error
	// Questions returns the questions of a run in the order in which they were first
	// asked.
	Questions(ctx context.Context, run string) ([]Question, error)
	// EachQuestion yields the questions that q selects, oldest first. It keeps only a few questions in memory at a time. If q
	// selects a single run, a damaged question is a *DamageError; otherwise damaged questions are skipped. If an error occurs,
	// EachQuestion yields it last.
	EachQuestion(ctx context.Context, q QuestionQuery) iter.Seq2[Question, error]
	// CountQuestions returns the number of questions that q selects, including damaged ones. It uses only the fields Run, Labels,
	// Path and Open of q.
	CountQuestions(ctx context.Context, q QuestionQuery) (int, error)
}

// A State is the state of a run.
type State string

// States of a run.
const (
	Running     State = "running"     // a process holds the run, as far as is known
	Waiting     State = "waiting"     // waiting for an answer: answer the question and resume the run
	Answered    State = "answered"    // waiting, but every question has been answered
	Done        State = "done"        // ended with a result
	Failed      State = "failed"      // failed; resuming the run retries it
	Canceled    State = "canceled"    // canceled by its user
	Drained     State = "drained"     // its process stopped it: see Options.Drain
	Interrupted State = "interrupted" // its process died, or could not record how the run ended
	Refused     State = "refused"     // a server could not continue it because its pipeline changed: see Options.Refuse
	Damaged     State = "damaged"     // the record of its start or end was altered, as described in Failure; the run can be removed
)

// RunInfo describes a run, without its steps.
type RunInfo struct {
	ID       string `json:"id"`
	Pipeline string `json:"pipeline"` // human-readable name of the pipeline
	// Source is JSON from which the caller can rebuild the pipeline. The journal does not read it.
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

	// Attempt is 0 until the run is resumed for the first time after it was done, failed or canceled. It is then 2, and increases
	// by 1 each time the run is resumed after it was done, failed or canceled.
	Attempt int `json:"attempt,omitempty"`

	Owner   string    `json:"owner,omitempty"`  // holder of the run; empty if there is none
	Started time.Time `json:"started,omitzero"` // time of the first start
	Outcome
}

// Again describes a step that a resumed run repeated: see Options.Again. An empty path means that the run's input was replaced with
// Options.Force.
type Again struct {
	Path string    `json:"path,omitempty"`
	Time time.Time `json:"time"` // records of the step, and of steps that read its result, are not used if they are older
}

// Outcome describes how a run last ended.
type Outcome struct {
	State   State          `json:"state"`
	Ended   time.Time      `json:"ended,omitzero"`
	Failure *Failure       `json:"failure,omitempty"`
	Retry   []string       `json:"retry,omitempty"`   // paths of the steps that are retried when the failed run is resumed
	Node    dag.ID         `json:"node,omitzero"`     // last node of the DAG: the result or the failure
	Heads   []dag.ID       `json:"heads,omitempty"`   // heads of the run's DAG; set by End
	Steps   int            `json:"steps"`             // number of steps with a result
	Usage   budget.Total   `json:"usage"`             // cost of all steps
	Lanes   dag.Losses     `json:"lanes,omitzero"`    // lost lanes and total lanes, only of fan-outs that lost any
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
	Kind string `json:"kind"` // as in step.Key, or "input" for the input DAG
	Name string `json:"name"`
	// Attempts is the number of times the step's work was started; it is 0 if the result comes from another run. If the step is not
	// Recorded, its last attempt is still running, or was running when its process ended or lost the run.
	Attempts int          `json:"attempts"`
	Failures int          `json:"failures,omitempty"` // attempts that ended without a result: their failure was discarded (see Journal.Begin), or their cost is known
	Recorded bool         `json:"recorded"`
	From     string       `json:"from,omitempty"`    // ID of the run from which the result was reused
	Time     time.Time    `json:"time,omitzero"`     // time of the result; see step.Record
	Started  time.Time    `json:"started,omitzero"`  // start of the last attempt
	Ended    time.Time    `json:"ended,omitzero"`    // time when the result was recorded
	Type     string       `json:"type,omitempty"`    // type of the node
	Node     dag.ID       `json:"node,omitzero"`     // node that the step created; zero if none
	Sum      dag.ID       `json:"sum,omitzero"`      // hash of type and content; see step.Record
	Failure  string       `json:"failure,omitempty"` // kind of the step's failure; empty if it did not fail
	Reason   string       `json:"reason,omitempty"`  // reason of the failure
	Usage    budget.Usage `json:"usage,omitzero"`    // usage of all attempts that have ended
	// Declared is the estimated cost of one attempt, which the step declared when it drew on an account. It is zero for a step
	// without cost.
	Declared budget.Amount `json:"declared,omitzero"`
	// Possible is the total of the attempts that declared a cost but have neither a result nor a known cost. It is not set in an
	// Outline.
	Possible budget.Possible   `json:"possible,omitzero"`
	Meta     map[string]string `json:"-"` // meta of the result; set only by EachStep
}

// Start updates s when an attempt starts. Start and Settle are meant for implementations of Journal.
func (s *Step) Start(declared budget.Amount) {
	s.Attempts, s.Declared, s.Possible = s.Attempts+1, declared, s.Possible.Start(declared)
}

// Settle updates s with the usage of the last attempt when that attempt has ended.
func (s *Step) Settle(used budget.Usage) {
	s.Usage, s.Possible = s.Usage.Add(used), s.Possible.End(s.Declared)
}

// PossiblyPaid returns the number of attempts that have neither a result nor a failure. They may have been billed.
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
	Asked    time.Time       `json:"asked"`              // time when the question was first asked
	Answered time.Time       `json:"answered,omitzero"`  // time of the answer; zero while the question is open
	Response string          `json:"response,omitempty"` // answer; also empty if the question was canceled
	By       string          `json:"by,omitempty"`       // name of the person who answered; empty if unknown
	Version  string          `json:"version,omitempty"`  // see ask.Question.Version
	Call     *ask.Call       `json:"call,omitempty"`     // tool call that the answer approves or refuses
	Given    time.Time       `json:"given,omitzero"`     // for a standing answer, the time when the earlier question was answered
	Due      time.Time       `json:"due,omitzero"`       // deadline after which Default is the answer
	Default  string          `json:"default,omitempty"`
	Standing []string        `json:"standing,omitempty"` // choices that also answer later questions: see ask.Question.Standing
}

// Open reports whether the question has not been answered yet.
func (q Question) Open() bool { return q.Answered.IsZero() }

var (
	// ErrUnavailable means that the store cannot be read or written at the moment, but may be usable later: its server does not
	// respond or has no free connection, its file is locked, or its disk is full. The store has already retried the operation.
	// Returned errors contain details, so use errors.Is to test for ErrUnavailable.
	ErrUnavailable = errors.New("the store is not available now: try again later")
	// ErrGone means that the store was removed or replaced while it was in use, so its runs cannot be resumed.
	ErrGone = errors.New("the store is gone")
	// ErrClosed is returned by every method of a store after Close.
	ErrClosed = errors.New("the journal is closed: open it again")
	// ErrNoRun means that no run has the given ID.
	ErrNoRun = errors.New("no such run: list the runs to see their names")
	// ErrNoStep means that the run has no step with the given path and kind that has a result.
	ErrNoStep = errors.New("no such step with a result")
	// ErrNoInput means that the input with which a run was started is not in the journal.
	ErrNoInput = errors.New("the input of the run is not recorded: start the run again with the same id and input")
	// ErrDone means that a run that is already done was replayed and reached a step without a record, so the pipeline must have
	// changed.
	ErrDone = errors.New("the run is done and has no record of this step: force the run to resume if the step should run")
	// ErrNoQuestion means that there is no open question with the given path.
	ErrNoQuestion = errors.New("no such question is open")
	// ErrAnswered means that the question has already been answered. It matches ErrNoQuestion.
	ErrAnswered error = &noQuestion{"the question is answered", ErrNoQuestion}
	// ErrAsksOther means that the question has changed since it was read. It matches ErrNoQuestion.
	ErrAsksOther error = &noQuestion{"the question has changed since it was shown: read it again", ErrNoQuestion}
	// ErrDrained means that the run was stopped by Options.Drain.
	ErrDrained = errors.New("stopped before its end: resume the run to continue")
)

// AnswerError reports that an answer was refused because the question does not accept it or because several questions match.
type AnswerError struct{ Err error }

func (e *AnswerError) Error() string { return e.Err.Error() }
func (e *AnswerError) Unwrap() error { return e.Err }

// HeldError reports that the run has another holder.
type HeldError struct {
	Where string // name of the store, such as "database stone.db"
	Run   string
	Owner string // in the form "host/pid/nonce"
}

// Error returns a message that names the holder of the run.
func (e *HeldError) Error() string {
	return fmt.Sprintf("run %q in %s is held by %s: wait until that ends, or end it", e.Run, e.Where, text.Process(e.Owner))
}

// AmbiguousError reports that several runs, or several nodes of a run, have IDs that begin with the given prefix.
type AmbiguousError struct {
	Prefix string
	Run    string   // the run that contains the nodes; empty if Found lists runs
	Found  []string // some of the matching IDs
}

// Error returns a message that lists the first few of the IDs.
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
	Where, Run string // name of the store, and ID of the run; Run is empty if the database itself is damaged
	Path       string // path of the step; empty for a node that no step created
	Node       string // ID of the node; empty if the record has no node
	Reason     string
}

// Error returns a message that names the damaged record and suggests a remedy.
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

// ChangedError reports that a run cannot be resumed because its input is different, or because its pipeline has changed in parts
// that the run has already reached.
type ChangedError struct {
	Run     string
	Changes []string // descriptions of the changes
}

// Error lists the changes.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("run %q was started with another pipeline or input: %s: start a new run, or force this one to resume with what is unchanged", e.Run, strings.Join(e.Changes, "; "))
}
