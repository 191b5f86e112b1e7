package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/step"
)

// A Journal keeps what runs have done. Its methods may be called by several
// goroutines, and several processes may share what is behind it. Times are for
// people: no rule depends on a clock. An error that is none of this package's
// types says in one line what is wrong with the store and what to do.
//
// Do takes the run if nobody has acquired it, so that a Journal can stand as the
// Recorder of stone.Run too; such a run has steps and nodes, may reuse from any
// run, and is otherwise empty.
type Journal interface {
	step.Recorder
	Holder
	Archive
	Reader
	Inspector
	Interviewer
}

// A Holder is how a process takes and leaves runs. A run whose id continues that of
// a run which this Journal holds, as "exp/17" continues "exp", is an inner run. It is
// released with the outer run at the latest. What is written about it reaches other
// processes when the outer run is released, or earlier.
type Holder interface {
	// Acquire takes the run with the id, which need not be there yet, and
	// returns what is known of it, zero for a new one. It fails with a
	// *HeldError as long as another holder lives, in this process too. To find
	// that out it may take as long as a lease, but not beyond ctx.
	Acquire(ctx context.Context, id string) (RunInfo, error)
	// Begin records that the run, which was acquired, starts or continues.
	// Its Outcome is nothing but Running from then on, the rest is as in r. If it
	// had ended Failed, the failures of the steps with the paths in Retry of the
	// Outcome that it had are forgotten: Steps counts them in Failures and Usage.
	Begin(ctx context.Context, r RunInfo) error
	// End writes down how the run ended, with all nodes of its DAG.
	End(ctx context.Context, id string, o Outcome) error
	// Release leaves the run to others. Without having it, it does nothing.
	Release(id string) error
}

// An Archive is the list of runs.
type Archive interface {
	// Find returns the run with the id, or the only one whose id begins with
	// prefix. What was acquired, and neither started nor given a step or a question,
	// is no run, here and in Runs. The error is ErrNoRun, or an *AmbiguousError.
	Find(ctx context.Context, prefix string) (RunInfo, error)
	// Runs returns a page of runs, the youngest first, without their Shape.
	Runs(ctx context.Context, q Query) ([]RunInfo, error)
	// Remove forgets a run and everything of it. Results that other runs have
	// reused stay with those. A run that is held is a *HeldError.
	Remove(ctx context.Context, id string) error
}

// A Reader reads what a run has done; the run may be under way meanwhile, here or
// elsewhere. A run that the journal does not have is empty.
type Reader interface {
	// Steps returns the steps in the order in which they were started first.
	// A step that was reused counts as started when that was recorded. What a step
	// declared is budget.Declared of the context of Do, and its usage is UsageOf
	// its records if it has declared anything.
	Steps(ctx context.Context, run string) ([]Step, error)
	// Record returns what a step of the run did. The error is ErrNoStep if there
	// is no result of a step with that path and kind.
	Record(ctx context.Context, run, path, kind string) (step.Record, error)
	// DAG returns the nodes: of a run that has ended those of its DAG and no
	// others (see Reached), of any other run those that its leaves made and all
	// from which they were made. Parents come first. The id of every node is
	// checked; one that was changed is a *DamageError.
	DAG(ctx context.Context, run string) (dag.DAG, error)
}

// An Interviewer keeps questions and their answers. A question is told by its run
// and its path.
type Interviewer interface {
	// Ask writes a question down if it is new, and returns it with its answer
	// if there is one. If q has a Problem, the answer is withdrawn first.
	Ask(ctx context.Context, q Question) (Question, error)
	// Answer answers a question. ErrNoQuestion says that there is none, or that
	// it is answered already.
	Answer(ctx context.Context, run, path, response string) error
	// Questions returns the questions of a run in the order in which they were
	// asked first.
	Questions(ctx context.Context, run string) ([]Question, error)
}

// A State says how things stand with a run.
type State string

// The states of a run.
const (
	Running     State = "running"     // somebody has it, as far as can be told
	Waiting     State = "waiting"     // for an answer: give it, and resume the run
	Answered    State = "answered"    // it waited, and every question has its answer
	Done        State = "done"        // with a result
	Failed      State = "failed"      // with a failure; resumed, that is tried again
	Canceled    State = "canceled"    // by whoever ran it, before its end
	Drained     State = "drained"     // its process was stopped, see Options.Drain
	Interrupted State = "interrupted" // its process has ended without saying how
)

// RunInfo is what is known of a run beside its steps.
type RunInfo struct {
	ID       string `json:"id"`
	Pipeline string `json:"pipeline"` // a name for people
	// Source is what the caller needs to make the pipeline again, nobody else
	// reads it.
	Source      json.RawMessage   `json:"source,omitempty"`
	Fingerprint dag.ID            `json:"fingerprint,omitzero"`
	Shape       []Part            `json:"shape,omitempty"`    // of the pipeline
	Revision    string            `json:"revision,omitempty"` // of the program, in its version control
	Labels      map[string]string `json:"labels,omitempty"`
	Reuse       string            `json:"reuse,omitempty"` // as in Options
	Input       dag.ID            `json:"input,omitzero"`  // digest of the DAG with which it began, zero for an empty one

	Owner   string    `json:"owner,omitempty"`  // who holds it, empty for nobody
	Started time.Time `json:"started,omitzero"` // for the first time
	Outcome
}

// Outcome is how a run ended, the last time that it did.
type Outcome struct {
	State   State        `json:"state"`
	Ended   time.Time    `json:"ended,omitzero"`
	Failure *Failure     `json:"failure,omitempty"`
	Retry   []string     `json:"retry,omitempty"` // paths of what is tried again when a run that failed is resumed
	Node    dag.ID       `json:"node,omitzero"`   // the last one: the result, or the failure
	Heads   []dag.ID     `json:"heads,omitempty"` // of the DAG; End sets it
	Steps   int          `json:"steps"`           // that have a result
	Usage   budget.Usage `json:"usage"`           // of all of them
	Lanes   dag.Losses   `json:"lanes,omitzero"`  // how many were lost, of those fan-outs that lost any
	DAG     dag.DAG      `json:"-"`               // for End only
}

// Failure is why a run or a step ended without a result.
type Failure struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
	Path   string `json:"path,omitempty"`
}

// Step is what a journal knows of a step.
type Step struct {
	Path string `json:"path"` // as these three in step.Key
	Kind string `json:"kind"` // also "input", for the DAG with which the run began
	Name string `json:"name"`
	// Attempts is how often its work was started, 0 if its result is another
	// run's. If it is not Recorded, the last one is under way, or was when its
	// process ended or gave up.
	Attempts int          `json:"attempts"`
	Failures int          `json:"failures,omitempty"` // attempts that ended without a result: their failure was forgotten, see Begin, or see Ended
	Recorded bool         `json:"recorded"`
	From     string       `json:"from,omitempty"`    // run from which the result was reused
	Time     time.Time    `json:"time,omitzero"`     // of the result, as in step.Record
	Started  time.Time    `json:"started,omitzero"`  // the last attempt
	Ended    time.Time    `json:"ended,omitzero"`    // when the result was recorded
	Type     string       `json:"type,omitempty"`    // of the node
	Node     dag.ID       `json:"node,omitzero"`     // that it made, zero if it made none
	Sum      dag.ID       `json:"sum,omitzero"`      // of type and content, as in step.Record
	Failure  string       `json:"failure,omitempty"` // kind of the failure with which it ended
	Reason   string       `json:"reason,omitempty"`  // of the failure
	Usage    budget.Usage `json:"usage,omitzero"`    // of the result and of all failures
	// Declared is what an attempt may cost, as budget.Declare said; zero for a
	// step that costs nothing.
	Declared budget.Amount `json:"declared,omitzero"`
}

// PossiblyPaid is how many attempts have left neither result nor failure, though
// their work may have cost something.
func (s Step) PossiblyPaid() int {
	n := s.Attempts - s.Failures
	if s.Recorded {
		n--
	}
	return max(n, 0)
}

// Question is a ask.Question as it is kept.
type Question struct {
	Run      string          `json:"run"`
	Path     string          `json:"path"`
	Name     string          `json:"name"`
	Text     string          `json:"text"`
	Choices  []string        `json:"choices,omitempty"`
	Schema   json.RawMessage `json:"schema,omitempty"`
	Problem  string          `json:"problem,omitempty"`  // why the answer before was none
	Asked    time.Time       `json:"asked"`              // for the first time
	Answered time.Time       `json:"answered,omitzero"`  // zero as long as it is open
	Response string          `json:"response,omitempty"` // empty also if the question was cancelled
}

// Open reports whether the question waits for an answer.
func (q Question) Open() bool { return q.Answered.IsZero() }

var (
	// ErrNoRun says that no run has the id.
	ErrNoRun = errors.New("no such run: list the runs to see their names")
	// ErrNoStep says that a run has no result of such a step.
	ErrNoStep = errors.New("no such step with a result")
	// ErrNoQuestion says that no such question is open.
	ErrNoQuestion = errors.New("no such question is open")
	// ErrDrained is the error of a run that was stopped by Options.Drain.
	ErrDrained = errors.New("stopped before its end: resume the run to continue")
)

// HeldError reports that another holder has the run.
type HeldError struct {
	Where string // the store, as "database stone.db"
	Run   string
	Owner string // as "host/pid/nonce"
}

// Error names the owner.
func (e *HeldError) Error() string {
	return fmt.Sprintf("run %q in %s is held by %s: wait until that process ends", e.Run, e.Where, e.Owner)
}

// AmbiguousError reports that several runs, or several nodes of a run, begin with
// a prefix.
type AmbiguousError struct {
	Prefix string
	Run    string   // the run of the nodes, empty if Found names runs
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

// DamageError reports a record that does not read as it was written.
type DamageError struct {
	Where, Run string
	Path       string // of the step, empty for a node that no step made
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
	return fmt.Sprintf("run %q in %s: %s %s: restore a copy of it, or start a new run", e.Run, e.Where, what, e.Reason)
}

// ChangedError reports that a run was started with another pipeline, or another
// input, than that with which it is to be resumed.
type ChangedError struct {
	Run     string
	Changes []string // what changed, in words
}

// Error lists the changes.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("run %q was started with another pipeline or input: %s: start a new run, or force this one to resume with what is unchanged", e.Run, strings.Join(e.Changes, "; "))
}
