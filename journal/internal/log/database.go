package log

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/fleet"
	"github.com/stonelayer/stone/journal"
)

// A Database stores the rows of a Journal. Its methods are safe for concurrent use, except that Update and Idle are called by only
// one goroutine at a time.
type Database interface {
	Reader
	// Update runs f in a transaction, which is durable when Update returns nil. Until the transaction ends, no other transaction
	// can change the rows that f has read. Update returns the error of f unchanged. An *UnknownError means that the transaction
	// may be durable.
	Update(f func(Tx) error) error
	// Listen is called at most once. From then until Close, a Database that can receive notifications calls wake soon after
	// another process has committed.
	Listen(wake func())
	// Idle is called when nothing has been written for a while.
	Idle() error
	// Check returns an error if the database was removed or replaced.
	Check() error
	// Passing reports whether an error may be temporary, such as a full disk.
	Passing(err error) bool
	// Explain converts a database error to a Trouble. It returns any other error, including a Trouble, unchanged.
	Explain(err error) error
	// Name returns the name of the database for error messages, such as "database stone.db".
	Name() string
	Close() error
}

// Trouble is a database error, explained in one line.
type Trouble struct {
	What    string // the database, its problem and the remedy
	Err     error
	Passing bool // a later attempt may succeed
}

// Error returns the message on one line. It removes the repetitions in the error of a client that tried both with and without TLS.
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

// Is reports whether target is [journal.ErrUnavailable] and the Trouble is temporary.
func (t *Trouble) Is(target error) bool { return t.Passing && target == journal.ErrUnavailable }

// UnknownError means that the connection was lost during a commit, so it is unknown whether the transaction was committed.
type UnknownError struct {
	Err error // a temporary error; see Database.Passing
	// Committed asks the database whether the transaction was committed. The answer is final.
	Committed func() (bool, error)
}

func (e *UnknownError) Error() string { return e.Err.Error() }
func (e *UnknownError) Unwrap() error { return e.Err }

// A Reader reads rows. It does not keep a connection while the caller ranges over the rows: see [Pages].
type Reader interface {
	// Run returns the run with the ID, or nil if there is none.
	Run(ctx context.Context, id string) (*Run, error)
	// Runs returns the selected runs without their Shape, newest first.
	Runs(ctx context.Context, s RunSelection) iter.Seq2[*Run, error]
	// CountRuns counts the runs that s selects, ignoring Before and Most.
	CountRuns(ctx context.Context, s RunSelection) ([]RunCount, error)
	// Named returns up to limit visible runs (see Visible) whose IDs begin with prefix, ordered by ID.
	Named(ctx context.Context, prefix string, limit int) ([]*Run, error)
	// Spent returns the recorded spending of the budget and period in k.
	Spent(ctx context.Context, k fleet.Key) (budget.Amount, error)
	// Rows returns the selected records of a run in the order of their numbers.
	Rows(ctx context.Context, run int64, s Selection) iter.Seq2[*Row, error]
	// Reusable returns the records with the given Reuse, oldest first. If from is not 0, it returns only records of the run from.
	// It omits records of the run with the number but.
	Reusable(ctx context.Context, reuse []byte, from, but int64) iter.Seq2[*Row, error]
	// Questions returns the selected questions in the order in which they were first asked.
	Questions(ctx context.Context, s QuestionSelection) iter.Seq2[*Question, error]
	// CountQuestions counts the questions that s selects, ignoring Most.
	CountQuestions(ctx context.Context, s QuestionSelection) (int64, error)
	// Notes returns a run's rows in the given table, ordered by name.
	Notes(ctx context.Context, table Beside, run int64) ([]*Note, error)
	// Outstanding returns the open batches of all runs.
	Outstanding(ctx context.Context) ([]*Outstanding, error)
	// Due returns up to most notices whose Next is at most now or greater than far, ordered by Next. It omits notices for the
	// receivers in but.
	Due(ctx context.Context, now, far int64, but []string, most int) ([]*Notice, error)
	// Block returns a block of a run's outline, or nil if there is none.
	Block(ctx context.Context, run int64, parent, slot string) (*Block, error)
	// Blocks returns all blocks of a parent in any order. Their Data is nil unless whole is set.
	Blocks(ctx context.Context, run int64, parent string, whole bool) ([]*Block, error)
}

// A RunCount is the number of runs for which all these fields are equal.
type RunCount struct {
	Pipeline, State string
	Held            bool   // the run has a holder: Run.Lease is not 0
	Owner, Outer    string // Owner is set only if Held
	Asks            bool   // the run is waiting and has an open question
	Runs            int64
}

// Selection selects records of a run. Its zero value selects all of them.
type Selection struct {
	After  int64      // with a higher number than this
	Seq    int64      // with this number
	Seqs   []int64    // with these numbers
	Path   string     // results of the step with this path
	Paths  []string   // the first result of each step with one of these paths; can be combined only with After
	Prefix string     // results of steps whose paths begin with this, in any order, from the index of paths; cannot be combined
	Under  string     // for results: only steps whose paths begin with this
	Node   *[2]dag.ID // with a node whose ID is in this range, including both ends
	Nodes  bool       // only records with a node
	Steps  bool       // only results and intents of steps
	Heads  bool       // results without their Content
	Aside  bool       // only records with numbers from Aside on; if false, only records with lower numbers
	Most   int        // at most this many records; all if 0
}

// A Tx is a transaction. Its reads include its own writes.
type Tx interface {
	Reader
	// Lock locks the runs with the given ids: other transactions that change one of these runs wait until this one ends. Lock
	// ignores missing runs. It may also read the runs in read in advance, for later calls of Run.
	Lock(ids, read []string) error
	// Insert stores a new run and sets its Row. It fails with a temporary error if another process has created the run in the
	// meantime.
	Insert(r *Run) error
	// Put replaces the fields of a run that are selected by which.
	Put(r *Run, which Fields) error
	// Label replaces the labels by which Runs selects a run. They are stored in the form that Column returns.
	Label(run int64, labels map[string]string) error
	// Spend adds more to the recorded spending of a budget, which never falls below zero. Removing a run does not change it.
	Spend(k fleet.Key, more budget.Amount) error
	// ForgetSpending removes the spending of old periods. It counts back from the latest day before today that has any spending:
	// periods that began more than kept days earlier are removed. A clock that is temporarily years ahead therefore removes
	// nothing.
	ForgetSpending(today, kept int64) error
	// Advance increments the beat of each run, stores its number of records, and sets Now to the new beat. If a run has another
	// owner, Advance sets Now to 0 and does not change the run. Until the transaction ends, no other transaction can change the
	// owners of the runs.
	Advance(beats []*Beat) error
	// Count stores the number of records of runs that this transaction has advanced or inserted.
	Count(beats []*Beat) error
	// Append stores records. Their Run and Seq must be set.
	Append(rows []*Row) error
	// Delete removes the records of a run with numbers from first to last, and returns the number of removed records.
	Delete(run, first, last int64) (int64, error)
	// PutBlocks stores blocks of a run's outline, replacing blocks with the same name.
	PutBlocks(run int64, blocks []*Block) error
	// RemoveBlocks removes the outline of a run.
	RemoveBlocks(run int64) error
	// PutNote stores a row in a table, replacing any row with the same Run and Name.
	PutNote(table Beside, n *Note) error
	// DropReceiver removes a receiver of a run together with its notices.
	DropReceiver(run int64, name string) error
	// Owe stores a notice, unless there already is one with the same Run, Receiver, Event and Name.
	Owe(n *Notice) error
	// OweReceivers stores a notice for each receiver of a run in the same way.
	OweReceivers(run int64, event string, at int64) error
	// PutNotice updates Next, Tries and Body of a stored notice if its Tries equals tries and its Next is not 0. It reports
	// whether there was such a notice.
	PutNotice(n *Notice, tries int64) (bool, error)
	// Remove removes a run together with its records, questions, outline and rows in other tables.
	Remove(run int64) error
	// PutQuestion stores a question, replacing any question with the same Run and Path.
	PutQuestion(q *Question) error
}

// A RunReader is a Tx that can read a run and some of its records in one round trip.
type RunReader interface {
	// RunWith returns the result of Run for an ID, and the result of Rows for the paths in the run with the given number. The
	// result whole reports whether found contains all these rows.
	RunWith(id string, run int64, paths []string) (r *Run, found []*Row, whole bool, err error)
}

// A Fencer is a Tx that can advance runs without waiting for the database's response, so most transactions take a single round
// trip.
type Fencer interface {
	// Fence is like Advance, but each Now must hold the last known beat, and is updated only when the transaction ends. If a run
	// has another owner or an older beat, the transaction fails with ErrFenced.
	Fence(beats []*Beat) error
}

// ErrFenced means that a transaction changed nothing because a Fence failed. Call Advance in a new transaction to find out which
// run was lost.
var ErrFenced = errors.New("a run was lost")

// Beat is a renewal of a run's lease: it proves that the run's owner is alive.
type Beat struct {
	Run   int64
	Owner string // owner that the run must have
	Rows  int64  // number of the run's records; a negative number leaves the stored number unchanged
	Now   int64  // the new beat; see Advance and Fence
}

// Aside is the lowest number of a result that was put aside for the holder of a run. Such results do not count as records of the
// run.
const Aside = 1 << 31

// Run is a run as a database stores it.
type Run struct {
	Row   int64 // number of the run, never reused; newer runs have higher numbers
	ID    string
	Owner string // the current or last holder
	Beat  int64  // increases as long as the owner is alive
	Lease int64  // how long a beat is valid, in milliseconds; 0 if the run has no holder
	Outer string // ID of the outer run whose lease covers this run; empty if it has its own lease
	Rows  int64  // number of records
	Asks  bool   // the run is waiting and has an open question; set only by Reader.Runs

	State    string // State of the Outcome
	Pipeline string // Pipeline, Started and Ended are used by RunSelection
	Started  int64
	Ended    int64
	Info     []byte // JSON; nil until the run is started
	Shape    []byte // JSON
	Outcome  []byte // JSON
	Tail     int64  // number of the first,
	Tip      int64  // and of the last record that belongs only to the Outcome
	Seal     []byte // checksum of the fields from State on; nil until the run is started
}

// Row is a record. A row with a Digest is the result of a step, a row with only a Node is a node that no step created, and a row
// with neither lists the steps that start or is detached from its step.
type Row struct {
	Run, Seq int64

	Digest  []byte
	Reuse   []byte // nil for a failure, too
	Node    []byte // ID of the node
	Parents []byte // IDs of the node's parents, 32 bytes each
	Path    string // path of the step whose result this is
	Head    []byte // JSON of everything except the content
	Seal    []byte // checksum of the fields from Digest on
	Content []byte // JSON of the content, or digests of the steps that start
}

// Block is a part of a run's outline; see package outline.
type Block struct {
	Parent, Slot string
	Counts       []byte
	Data         []byte
	Seal         []byte // checksum of the other fields, followed by a checksum of Data
}

// Question is a question as a database stores it.
type Question struct {
	Seq  int64  // number of the question, never reused; later questions have higher numbers; PutQuestion ignores it
	Run  int64  // number of the run
	Of   string // ID of the run; set only by Reader.Questions
	Path string
	Open bool
	Text []byte // JSON
	Seal []byte // checksum of Run, Path, Open and Text
}

// firstPage is the size of the first page if the caller does not specify a number of rows. It is small because many callers need
// only a few rows. Each later page has up to 8 times as many rows as the one before.
const firstPage = 64

// Pages ranges over up to total rows, or over all rows if total is 0. The function next returns a page of up to limit rows that
// follow the row after (or the first rows if after is nil), and reports whether there may be more. No page has more than most
// rows. Each page is read completely before its first row is yielded, so no connection is in use while the caller works, and a
// nested read does not need a second connection.
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
				clear(page[i : i+1]) // a row that has been yielded need not stay in memory
			}
			if left -= len(page); !more || len(page) == 0 || left == 0 {
				return
			}
			limit = min(8*limit, most)
		}
	}
}
