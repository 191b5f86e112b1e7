package log

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stonelayer/stone/journal"
)

// Fields selects fields of a run that are written together; each value includes the fields of the lower ones. A database updates
// the indexes of all columns in a statement, even if a value is unchanged. Therefore a change of the holder writes no indexed
// columns, and the end of a run does not write the fields set by its start.
type Fields int

// The fields of a run, except for its ID, Beat and Rows.
const (
	Holding Fields = iota // only Owner, Lease and Outer
	Ending                // also State, Outcome, Ended, Tail, Tip and Seal
	All                   // also Pipeline, Started, Info and Shape
)

// columns are the columns that each value of Fields adds to the lower ones.
var columns = [...][]string{Holding: {"owner", "lease", "outside"}, Ending: {"state", "outcome", "ended", "tail", "tip", "seal"}, All: {"pipeline", "started", "info", "shape"}}

// Putting returns the statement that stores fields of the run whose number is $1. Table names are prefixed with schema.
func Putting(schema string, which Fields) string {
	text := "UPDATE " + schema + "runs SET "
	for i, column := range slices.Concat(columns[:which+1]...) {
		text += fmt.Sprintf("%s = $%d, ", column, i+2)
	}
	return strings.TrimSuffix(text, ", ") + " WHERE run = $1"
}

// Inserting returns the statement that stores a new run with the ID $1 and returns its number.
func Inserting(schema string) string {
	names, places := "id, beat", "$1, 0"
	for i, column := range slices.Concat(columns[:]...) {
		names, places = names+", "+column, places+fmt.Sprintf(", $%d", i+2)
	}
	return fmt.Sprintf("INSERT INTO %sruns (%s) VALUES (%s) RETURNING run", schema, names, places)
}

// Arguments returns the arguments for the statements of Putting and Inserting: the key, which is $1, and the fields.
func (r *Run) Arguments(key any, which Fields) []any {
	text := func(b []byte) any {
		if b == nil {
			return nil
		}
		return string(b)
	}
	seal := any(r.Seal)
	if r.Seal == nil {
		seal = nil
	}
	all := []any{key, r.Owner, r.Lease, r.Outer, r.State, text(r.Outcome), r.Ended, r.Tail, r.Tip, seal, r.Pipeline, r.Started, text(r.Info), text(r.Shape)}
	return all[:1+len(slices.Concat(columns[:which+1]...))]
}

// RunSelection selects visible runs (see Visible). Its zero value selects all of them. The columns that it compares are shortened
// and have no checksum, so the caller must check the conditions again against each run's description.
type RunSelection struct {
	Before   int64             // older than the run with this number
	States   []string          // in one of these states
	Answered bool              // only those waiting runs that have no open question
	Asking   bool              // with an open question
	Pipeline string            // of this pipeline, as a Column
	Labels   map[string]string // with all of these labels, as Columns
	Started  int64             // started at or after this time, in Unix milliseconds
	Until    int64             // started at or before this time
	Ended    int64             // ended at or after this time
	Cost     float64           // costing at least this amount in USD; 0 for any cost
	Failed   bool              // only runs with a failure
	Failure  string            // with this lower-case text in the failure
	Most     int               // at most this many, the newest ones; all if 0
	All      bool              // also runs that are not visible; cannot be combined with times
}

// unfinished lists the states that few runs are in at any time.
var unfinished = []string{"", string(journal.Running), string(journal.Waiting), string(journal.Drained)}

// Column converts a string to the form in which it is stored in indexed columns: shortened, because an index entry has a maximum
// size, and without characters that databases refuse.
func Column(s string) string {
	const most = 100 // characters; the migrations use the same number
	s = strings.ReplaceAll(strings.ToValidUTF8(s, string(utf8.RuneError)), "\x00", string(utf8.RuneError))
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i]
		}
	}
	return s
}

// Visible returns the SQL condition that a run r is visible to others: it has been started, or has a step or a question. Table
// names are prefixed with schema.
func Visible(schema string) string {
	return fmt.Sprintf("(r.info IS NOT NULL OR r.rows > 0 OR EXISTS (SELECT 1 FROM %squestions q WHERE q.run = r.run))", schema)
}

// Keys returns a query for the numbers of up to limit runs, newest first, and the query's arguments. Table names are prefixed
// with schema. The query reads a single index (of open questions, unfinished states, labels, pipelines, states or failures), from
// the newest run on, until it has found enough runs. If only times or a rare cost are given, the query reads the index of these
// and sorts the matching runs. Where an expression such as "run + 0" replaces a column, it keeps the database from choosing
// another index. For values that an index omits, such as a cost of zero, the query contains the same condition as the index.
func (s RunSelection) Keys(schema string, limit int) (text string, args []any) {
	place := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	var where []string
	and := func(condition string, value any) { where = append(where, fmt.Sprintf(condition, place(value))) }
	from, order := schema+"runs r", "r.run"
	labels := slices.Sorted(maps.Keys(s.Labels))
	states := s.States
	few := len(states) > 0 && !slices.ContainsFunc(states, func(s string) bool { return !slices.Contains(unfinished, s) })
	byState := !s.Asking && (few || len(states) > 0 && len(labels) == 0 && s.Ended == 0)
	byTime := !s.Asking && !byState && len(labels) == 0 && s.Pipeline == "" && (s.Started != 0 || s.Ended != 0)
	costly := s.Cost > 0 && !s.Failed && !s.Asking && !byState && !byTime && len(labels) == 0 && s.Pipeline == ""
	switch {
	case s.All:
		where = append(where, "true")
	case !byTime && !s.Failed && s.Cost == 0: // a run with a time, failure or cost has been started
		where = append(where, Visible(schema))
	}
	switch {
	case s.Asking:
		order = "(r.run + 0)"
		where = append(where, fmt.Sprintf("r.run IN (SELECT q.run FROM %squestions q WHERE q.open)", schema))
	case byTime:
		order = "(r.run + 0)"
	case !byState && len(labels) > 0:
		from, order = fmt.Sprintf("%slabels l CROSS JOIN %sruns r", schema, schema), "l.run"
		where = append(where, "r.run = l.run")
		and("l.name = %s", Column(labels[0]))
		and("l.value = %s", Column(s.Labels[labels[0]]))
		labels = labels[1:]
	}
	if s.Before != 0 {
		and(order+" < %s", s.Before)
	}
	for _, name := range labels {
		where = append(where, fmt.Sprintf("EXISTS (SELECT 1 FROM %slabels has WHERE has.name = %s AND has.value = %s AND has.run = r.run)",
			schema, place(Column(name)), place(Column(s.Labels[name]))))
	}
	pipeline := ""
	switch {
	case s.Pipeline == "":
	case byState:
		pipeline = place(Column(s.Pipeline))
	case s.Asking:
		and("r.pipeline || '' = %s", Column(s.Pipeline))
	default:
		and("r.pipeline = %s", Column(s.Pipeline))
	}
	since := func(column string, at int64) {
		if at == 0 {
			return
		}
		and("r."+column+" >= %s AND r."+column+" <> 0", at)
		if !byTime && !few && !s.Asking { // lets the scan stop at the oldest matching run
			where = append(where, fmt.Sprintf("%s >= (SELECT coalesce(min(run + 0), 0) FROM %sruns WHERE %s >= $%d AND %[3]s <> 0)", order, schema, column, len(args)))
		}
	}
	since("ended", s.Ended)
	since("started", s.Started)
	if s.Until != 0 {
		and("r.started <= %s", s.Until)
	}
	if s.Failed {
		where = append(where, "r.failure IS NOT NULL")
	}
	if s.Failure != "" {
		and("strpos(r.failure, %s) > 0", s.Failure)
	}
	if !byState && len(states) > 0 {
		places := make([]string, len(states))
		for i, state := range states {
			places[i] = place(state)
		}
		where = append(where, "r.state || '' IN ("+strings.Join(places, ", ")+")")
	}
	one := func(order, more, limit string) string {
		return fmt.Sprintf("SELECT r.run FROM %s WHERE %s ORDER BY %s DESC LIMIT %s", from, strings.Join(append(where, more), " AND "), order, limit)
	}
	most := strconv.Itoa(limit)
	if costly {
		return byCost(schema, order, place(s.Cost), one, limit), args
	}
	if s.Cost > 0 {
		and("r.cost + 0 >= %s", s.Cost)
	}
	if !byState {
		return one(order, "true", most), args
	}
	// Each state is read from its own index, in the order of that index.
	all := make([]string, len(states))
	for i, state := range states {
		is := "r.state = " + place(state)
		switch {
		case pipeline == "":
		case state == "" || state == string(journal.Running): // there are few such runs, and the index of pipeline and state omits them
			is += " AND r.pipeline || '' = " + pipeline
		default:
			is += " AND r.pipeline = " + pipeline + " AND r.state NOT IN ('', 'running')"
		}
		if s.Answered && state == string(journal.Waiting) {
			is += fmt.Sprintf(" AND NOT EXISTS (SELECT 1 FROM %squestions q WHERE q.run = r.run AND q.open)", schema)
		}
		all[i] = "SELECT run FROM (" + one(order, is, most) + ") s" + fmt.Sprint(i)
	}
	return fmt.Sprintf("SELECT run FROM (%s) found ORDER BY run DESC LIMIT %d", strings.Join(all, " UNION ALL "), limit), args
}

// Asks returns an SQL expression that is 1 if a run r is waiting and has an open question, and otherwise 0.
func Asks(schema string) string {
	return fmt.Sprintf("CASE WHEN r.state = 'waiting' AND EXISTS (SELECT 1 FROM %squestions q WHERE q.run = r.run AND q.open) THEN CAST(1 AS bigint) ELSE 0 END", schema)
}

// CountKeys returns a query for the columns of [RunCount], and the query's arguments.
func (s RunSelection) CountKeys(schema string) (text string, args []any) {
	keys, args := s.Keys(schema, math.MaxInt32)
	return fmt.Sprintf(`SELECT pipeline, state, held, CASE WHEN held = 1 THEN owner ELSE '' END AS holder, outside, asks, count(*) FROM (
		SELECT pipeline, state, CASE WHEN lease > 0 THEN CAST(1 AS bigint) ELSE 0 END AS held, owner, outside, %s AS asks FROM %sruns r WHERE run IN (%s)) facts
		GROUP BY pipeline, state, held, holder, outside, asks`, Asks(schema), schema, keys), args
}

// byCost returns a query for runs with at least a given cost. It consists of two parts. If few runs match, the first part reads
// them from the index of costs and sorts them. If many match, the second part reads the newest runs until it has found enough. The
// part that is not used has a limit of 0 and reads nothing.
func byCost(schema, order, least string, one func(order, more, limit string) string, limit int) string {
	const few = 1000
	are := func(how string) string {
		return fmt.Sprintf("(SELECT CASE WHEN count(*) %s %d THEN %d ELSE 0 END FROM (SELECT 1 FROM %sruns WHERE cost >= %s AND cost <> 0 LIMIT %d) costly)", how, few, limit, schema, least, few+1)
	}
	return fmt.Sprintf("SELECT run FROM (SELECT run FROM (%s) few UNION ALL SELECT run FROM (%s) many) found ORDER BY run DESC LIMIT %d",
		one("(r.run + 0)", "r.cost <> 0 AND r.cost >= "+least, are("<=")), one(order, "r.cost + 0 >= "+least, are(">")), limit)
}

// QuestionSelection selects questions. Its zero value selects the questions of all runs that have neither a result nor a failure.
type QuestionSelection struct {
	Run    int64             // of the run with this number
	Labels map[string]string // of runs with all of these labels, as Columns
	Path   string            // the question at this path
	Open   bool              // open questions only
	Due    bool              // open questions with a deadline; may select others too
	After  int64             // with a number higher than this
	Most   int               // at most this many, the oldest ones; all if 0
}

// Where returns the SQL condition that a question q is selected, and the condition's arguments. Table names are prefixed with
// schema.
func (s QuestionSelection) Where(schema string) (text string, args []any) {
	var where []string
	and := func(condition string, values ...any) {
		places := make([]any, len(values))
		for i, value := range values {
			args = append(args, value)
			places[i] = fmt.Sprintf("$%d", len(args))
		}
		where = append(where, fmt.Sprintf(condition, places...))
	}
	if s.Run != 0 {
		and("q.run = %s", s.Run)
	} else {
		and("EXISTS (SELECT 1 FROM " + schema + "runs r WHERE r.run = q.run AND r.state NOT IN ('done', 'failed'))")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		and("EXISTS (SELECT 1 FROM "+schema+"labels has WHERE has.name = %s AND has.value = %s AND has.run = q.run)", Column(name), Column(s.Labels[name]))
	}
	if s.Path != "" {
		and("q.path = %s", s.Path)
	}
	if s.Open || s.Due {
		and("q.open")
	}
	if s.Due { // the text may also occur in other parts of a question
		and("strpos(q.question, %s) > 0", `"due":"`)
	}
	if s.After != 0 {
		and("q.seq > %s", s.After)
	}
	return strings.Join(where, " AND "), args
}

// QuestionColumns are the columns to read of a question q and its run r.
const QuestionColumns = "q.seq, q.run, r.id, q.path, q.open, q.question, q.seal"
