package log

import (
	"context"
	"iter"

	"github.com/stonelayer/stone/dag"
)

// A Database keeps the rows of a Journal. Its methods may be called by several
// goroutines, Update and Idle by one at a time.
type Database interface {
	Reader
	// Update runs f in a transaction, which is durable when Update returns nil.
	// What f reads must not be changed by others before the transaction ends.
	// The error of f comes back as it is.
	Update(f func(Tx) error) error
	// Idle is called when nothing has been written for a while.
	Idle() error
	// Check reports that the database was removed or replaced.
	Check() error
	// Passing reports whether an error may go away by itself, as that of a full disk.
	Passing(err error) bool
	// Explain makes one line of an error of the database: what is wrong and what
	// to do. It returns other errors as they are.
	Explain(err error) error
	// Name names the database in errors, as "database stone.db".
	Name() string
	Close() error
}

// A Reader reads rows.
type Reader interface {
	// Run returns the run with the id, or nil.
	Run(ctx context.Context, id string) (*Run, error)
	// Runs returns runs without their Shape, the youngest first: those older than
	// before, if it is not 0, with one of the states, if there are any.
	Runs(ctx context.Context, before int64, states []string) iter.Seq2[*Run, error]
	// Named returns up to limit runs whose id begins with prefix, in the order
	// of their ids.
	Named(ctx context.Context, prefix string, limit int) ([]*Run, error)
	// Rows returns records of a run in the order of their numbers.
	Rows(ctx context.Context, run int64, s Selection) iter.Seq2[*Row, error]
	// Reusable returns records with that Reuse of all runs but one, the oldest
	// first, from one run only if from is not 0.
	Reusable(ctx context.Context, reuse []byte, from, but int64) iter.Seq2[*Row, error]
	// Questions returns the questions of a run in the order in which they were
	// asked first.
	Questions(ctx context.Context, run int64, s QuestionSelection) iter.Seq2[*Question, error]
}

// Selection says which records of a run are wanted; its zero value wants all.
type Selection struct {
	After int64      // with a higher number
	Seq   int64      // the one with this number
	Path  string     // results of the step with this path
	Under string     // of results only those of steps whose paths begin with this
	Node  *[2]dag.ID // those whose node has an id from the first to the second
	Nodes bool       // those that have a node
	Steps bool       // those of steps: results and intents
	Heads bool       // results without their Content
}

// QuestionSelection says which questions are wanted; its zero value wants all.
type QuestionSelection struct {
	Path string // the question at this path
	Open bool   // open questions only
}

// A Tx is a transaction. Its Reader sees what it has written.
type Tx interface {
	Reader
	// Insert writes a new run down and sets its Row.
	Insert(r *Run) error
	// Put replaces a run, but not its ID, Beat and Rows.
	Put(r *Run) error
	// Advance moves the beat of a run and sets how many records it has, if the
	// run has the owner; otherwise it changes nothing and reports false. Rows
	// below 0 leaves that number as it is.
	Advance(run int64, owner string, rows int64) (bool, error)
	// Append writes records, which have their Run and Seq.
	Append(rows []*Row) error
	// Delete removes the records of a run with numbers from first to last, and
	// says how many there were.
	Delete(run, first, last int64) (int64, error)
	// Remove removes a run with its records and questions.
	Remove(run int64) error
	// PutQuestion writes a question, or replaces the one with its Run and Path.
	PutQuestion(q *Question) error
}

// Run is a run as a database keeps it.
type Run struct {
	Row   int64 // its number; younger runs have higher ones
	ID    string
	Owner string // who has it, or had it last
	Beat  int64  // grows as long as the owner lives
	Lease int64  // milliseconds that a beat is good for, 0 if nobody has the run
	Outer string // id of the run under whose lease it is, empty for its own
	Rows  int64  // how many records it has

	State   string // of the Outcome
	Info    []byte // JSON, nil until the run is started
	Shape   []byte // JSON
	Outcome []byte // JSON
	Tail    int64  // the numbers of the first and
	Tip     int64  // the last record that belong to the Outcome only
	Seal    []byte // of the fields from State on, nil until the run is started
}

// Row is a record: with a Digest the result of a step, with a Node only a node that
// no step made, with neither a list of steps whose work starts.
type Row struct {
	Run, Seq int64

	Digest  []byte
	Reuse   []byte // nil also for a failure
	Node    []byte // id
	Parents []byte // ids, 32 bytes each
	Path    string // of the step that has a result
	Head    []byte // JSON: all but the content
	Seal    []byte // of the fields from Digest on
	Content []byte // JSON, or the digests of the steps that start
}

// Question is a question as a database keeps it.
type Question struct {
	Run  int64
	Path string
	Open bool
	Text []byte // JSON
	Seal []byte // of the fields above
}
