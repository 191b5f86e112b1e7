package log

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/flight"
	"github.com/stonelayer/stone/journal"
)

// A Database keeps the rows of a Journal. Its methods may be called by several
// goroutines, Update and Idle by one at a time.
type Database interface {
	Reader
	// Update runs f in a transaction, which is durable when Update returns nil. No one
	// else may change the rows that f reads before the transaction ends. The error of f is
	// returned unchanged. An *UnknownError means that the transaction may be durable.
	Update(f func(Tx) error) error
	// Listen is called at most once. Until Close, the Database then calls wake soon after other processes commit, if it is
	// notified.
	Listen(wake func())
	// Idle is called when nothing has been written for a while.
	Idle() error
	// Check reports that the database was removed or replaced.
	Check() error
	// Passing reports whether an error may be temporary, such as a full disk.
	Passing(err error) bool
	// Explain turns a database error into a Trouble. It returns other errors, and a Trouble, unchanged.
	Explain(err error) error
	// Name names the database in errors, such as "database stone.db".
	Name() string
	Close() error
}

// Trouble is an error of a Database, explained in one line.
type Trouble struct {
	What    string // what is wrong with which database, and what to do
	Err     error
	Passing bool // a later attempt may succeed
}

// Error returns one line, without the repetitions of a client that tried with and without TLS.
func (t *Trouble) Error() string {
	var lines []string
	for line := range strings.Lines(t.Err.Error()) {
		if line = strings.Join(strings.Fields(line), " "); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return t.What + ": " + strings.Join(lines, " ")
}

func (t *Trouble) Unwrap() error { return t.Err }

// Is reports whether target is [journal.ErrUnavailable] and the Trouble may pass.
func (t *Trouble) Is(target error) bool { return t.Passing && target == journal.ErrUnavailable }

// UnknownError is the error of a transaction that was lost while it was committed.
type UnknownError struct {
	Err error // Passing
	// Committed asks the database whether the transaction is durable. The answer is final.
	Committed func() (bool, error)
}

func (e *UnknownError) Error() string { return e.Err.Error() }
func (e *UnknownError) Unwrap() error { return e.Err }

// A Reader reads rows. It holds no connection while the caller ranges over them: see [Pages].
type Reader interface {
	// Run returns the run with the id, or nil.
	Run(ctx context.Context, id string) (*Run, error)
	// Runs returns runs without their Shape, the newest first.
	Runs(ctx context.Context, s RunSelection) iter.Seq2[*Run, error]
	// CountRuns counts the runs of a selection, without Before and Most.
	CountRuns(ctx context.Context, s RunSelection) ([]RunCount, error)
	// Named returns up to limit runs that others may see and whose id begins with prefix, in
	// the order of their ids.
	Named(ctx context.Context, prefix string, limit int) ([]*Run, error)
	// Spent returns a budget's recorded spending in a period.
	Spent(ctx context.Context, k flight.Key) (budget.Amount, error)
	// Rows returns records of a run in the order of their numbers.
	Rows(ctx context.Context, run int64, s Selection) iter.Seq2[*Row, error]
	// Reusable returns records of all runs but one that have the Reuse, the oldest first;
	// if from is not 0, from that run only.
	Reusable(ctx context.Context, reuse []byte, from, but int64) iter.Seq2[*Row, error]
	// Questions returns questions in the order in which they were first asked.
	Questions(ctx context.Context, s QuestionSelection) iter.Seq2[*Question, error]
	// CountQuestions counts the questions of a selection, without Most.
	CountQuestions(ctx context.Context, s QuestionSelection) (int64, error)
	// Notes returns a run's rows in a table beside its records, by name.
	Notes(ctx context.Context, table Beside, run int64) ([]*Note, error)
	// Outstanding returns the open batches of all runs.
	Outstanding(ctx context.Context) ([]*Outstanding, error)
	// Due returns up to most notices whose Next is at most now or greater than far, smallest first, except those for the
	// receivers in but.
	Due(ctx context.Context, now, far int64, but []string, most int) ([]*Notice, error)
	// Block returns a block of a run's outline, or nil.
	Block(ctx context.Context, run int64, parent, slot string) (*Block, error)
	// Blocks returns the blocks of a parent in any order. Unless whole is set, their Data is
	// nil.
	Blocks(ctx context.Context, run int64, parent string, whole bool) ([]*Block, error)
}

// A RunCount is the number of runs with the same facts.
type RunCount struct {
	Pipeline, State string
	Held            bool   // Owner's lease has not ended, as in Run.Lease
	Owner, Outer    string // Owner only if Held
	Asks            bool   // it waits and has an open question
	Runs            int64
}

// Selection selects records of a run; its zero value selects all.
type Selection struct {
	After  int64      // with a higher number than this
	Seq    int64      // with this number
	Seqs   []int64    // with these numbers
	Path   string     // results of the step with this path
	Paths  []string   // the first result of each step with one of these paths; can be combined only with After
	Prefix string     // results of steps whose paths begin with this, in any order, using the index of paths; cannot be combined
	Under  string     // results only of steps whose paths begin with this
	Node   *[2]dag.ID // with a node whose id is in this range, inclusive
	Nodes  bool       // with a node
	Steps  bool       // only results and intents of steps
	Heads  bool       // results without their Content
	Aside  bool       // with numbers from Aside on; otherwise only lower ones
	Most   int        // only the first ones, all if 0
}

// A Tx is a transaction. Its Reader sees what it has written.
type Tx interface {
	Reader
	// Lock makes other transactions that change one of these runs wait until this one ends. It ignores missing runs. It may also
	// read the runs in read, for Run.
	Lock(ids, read []string) error
	// Insert stores a new run and sets its Row. It fails with a temporary error if another process has created the run meanwhile.
	Insert(r *Run) error
	// Put replaces fields of a run.
	Put(r *Run, which Fields) error
	// Label replaces the labels of a run, by which Runs selects it: see Column.
	Label(run int64, labels map[string]string) error
	// Spend adds to the sum of a budget, which never falls below zero. Remove does not change it.
	Spend(k flight.Key, more budget.Amount) error
	// ForgetSpending removes the budgets of periods that began more than kept days before the last day, before today, with
	// spending. So a clock that is temporarily years ahead removes nothing.
	ForgetSpending(today, kept int64) error
	// Advance increments the beats of runs and sets the numbers of their records. It sets each Now; for a run with another owner
	// it sets 0 and changes nothing else. Until the transaction ends, no other transaction can change the owners.
	Advance(beats []*Beat) error
	// Count sets the numbers of the records of runs that this transaction has advanced or inserted.
	Count(beats []*Beat) error
	// Append stores records, whose Run and Seq are set.
	Append(rows []*Row) error
	// Delete removes the records of a run with numbers from first to last, and returns how
	// many it removed.
	Delete(run, first, last int64) (int64, error)
	// PutBlocks stores blocks of a run's outline, and replaces blocks of the same name.
	PutBlocks(run int64, blocks []*Block) error
	// RemoveBlocks removes the outline of a run.
	RemoveBlocks(run int64) error
	// PutNote stores a row of a table, or replaces the one with its Run and Name.
	PutNote(table Beside, n *Note) error
	// DropReceiver removes a receiver of a run, and the notices for it.
	DropReceiver(run int64, name string) error
	// Owe stores a notice, unless there is one with its Run, Receiver, Event and Name.
	Owe(n *Notice) error
	// OweReceivers does the same for each receiver of a run.
	OweReceivers(run int64, event string, at int64) error
	// PutNotice changes Next, Tries and Body of a notice that has the given tries and a Next, and reports whether there was one.
	PutNotice(n *Notice, tries int64) (bool, error)
	// Remove removes a run with its records, questions, outline and rows in other tables.
	Remove(run int64) error
	// PutQuestion stores a question, or replaces the one with its Run and Path.
	PutQuestion(q *Question) error
}

// A RunReader is a Tx that reads a run and records of it in one round trip.
type RunReader interface {
	// RunWith returns the results of Run, and of Rows for the Paths of a run with a number. It reports whether these are all
	// rows.
	RunWith(id string, run int64, paths []string) (r *Run, found []*Row, whole bool, err error)
}

// A Fencer is a Tx that does not wait for the answer to Advance, so most transactions take one round trip.
type Fencer interface {
	// Fence is like Advance, but each Now holds the last known beat and is set only at the end of the transaction. If a run has
	// another owner or an older beat, the transaction fails with ErrFenced.
	Fence(beats []*Beat) error
}

// ErrFenced is the error of a transaction that changed nothing because of a Fence. Advance then identifies the lost run.
var ErrFenced = errors.New("a run was lost")

// Beat is a run's sign of life.
type Beat struct {
	Run   int64
	Owner string // required owner of the run
	Rows  int64  // number of its records; negative keeps the stored number
	Now   int64  // the beat
}

// Aside is the first number of the results that were put aside for the holder of a run. They do not count as the run's records.
const Aside = 1 << 31

// Run is a run as a database stores it.
type Run struct {
	Row   int64 // its number, never reused; newer runs have higher numbers
	ID    string
	Owner string // the present or last holder
	Beat  int64  // grows as long as the owner lives
	Lease int64  // milliseconds that a beat is valid, 0 without a holder
	Outer string // id of the run whose lease covers it, empty for its own
	Rows  int64  // number of its records
	Asks  bool   // it waits and has an open question; set only by Reader.Runs

	State    string // of the Outcome
	Pipeline string // this and the next two are for RunSelection
	Started  int64
	Ended    int64
	Info     []byte // JSON, nil until the run is started
	Shape    []byte // JSON
	Outcome  []byte // JSON
	Tail     int64  // the numbers of the first
	Tip      int64  // and last record that belong only to the Outcome
	Seal     []byte // seal of the fields from State on, nil until the run is started
}

// Row is a record. With a Digest it is the result of a step; with only a Node, a node that no step made; with neither, a list of
// steps whose work starts.
type Row struct {
	Run, Seq int64

	Digest  []byte
	Reuse   []byte // also nil for a failure
	Node    []byte // id
	Parents []byte // ids, 32 bytes each
	Path    string // path of the step that has a result
	Head    []byte // JSON: everything but the content
	Seal    []byte // seal of the fields from Digest on
	Content []byte // JSON, or the digests of the steps that start
}

// Block is a part of a run's outline, see package outline.
type Block struct {
	Parent, Slot string
	Counts       []byte
	Data         []byte
	Seal         []byte // seal of the other fields, then of Data
}

// Question is a question as a database stores it.
type Question struct {
	Seq  int64  // its number, never reused; later questions have higher numbers; not read by PutQuestion
	Run  int64  // its run
	Of   string // id of the run, set only by Reader.Questions
	Path string
	Open bool
	Text []byte // JSON
	Seal []byte // seal of Run, Path, Open and Text
}

// firstPage is the size of the first page if the caller does not specify a number, because many callers need few rows. Each later
// page has up to 8 times as many.
const firstPage = 64

// Pages ranges over up to total rows, or over all if total is 0. Next returns a page of up to limit rows after a row, from the
// start if after is nil, and whether more may follow. No page has more than most rows. A page is read completely before its first
// row is yielded, so no connection is in use while the caller works, and a nested read needs no second one.
func Pages[T any](most, total int, next func(after *T, limit int) (page []T, more bool, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last *T
		limit, left := min(firstPage, most), total
		for {
			if total > 0 {
				limit = min(left, most)
			}
			page, more, err := next(last, limit)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for i, row := range page {
				if last = &row; !yield(row, nil) {
					return
				}
				clear(page[i : i+1]) // rows already yielded need not stay in memory
			}
			if left -= len(page); !more || len(page) == 0 || left == 0 {
				return
			}
			limit = min(8*limit, most)
		}
	}
}
