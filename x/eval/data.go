package eval

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/schema"
)

// Data selects the cases of an evaluation, from a file or from rows.
type Data struct {
	File string // name of a file in JSON Lines, or in CSV if the name ends in .csv
	Rows []any  // used instead of the file; each row must marshal to a JSON object

	Expected string   // column with the expected output; empty means "expected"
	Cluster  string   // column whose value is the same for questions that depend on each other; may be empty
	Slices   []string // columns by whose values the report is split

	// Split selects a part of the data: the rows whose column "split" has this value. If there is no such column, "dev" is the
	// half of the cases in whose digest the second byte begins with a 0 bit, and "test" is the other half. Empty selects all
	// rows.
	Split string
	N     int    // maximum number of cases to draw; zero means all
	Seed  uint64 // seed of the draw; a larger N includes all cases of a smaller N
}

// Parts of a data set. Choices are made on one part, and results are reported on the other.
const (
	DevSplit  = "dev"
	TestSplit = "test"
)

// A dataset contains the selected rows and the types of their inputs.
type dataset struct {
	Data
	inputs   []tree.Input
	rows     []row // in the order of the file
	byID     map[string]int32
	named    bool   // Expected was set
	expects  bool   // at least one row has an expected output
	sum      string // digest of the cases
	test     string // digest of the whole split "test", if selected
	whole    int    // number of rows from which Data.N were drawn
	repeated int    // number of rows that repeat a case

	recorded map[string]string // recorded runs by case; nil if the cases are not runs
	skipped  map[string]int    // number of skipped runs, by reason
}

// maxFaults is the maximum number of faulty rows that an error lists. Further faulty rows are only counted.
const maxFaults = 5

// load reads the rows and binds them to the inputs that the pipeline has in a run with cfg. The error lists the first faults with
// row and column.
func (d Data) load(ctx context.Context, p stone.Ashlar, cfg stone.Config) (*dataset, error) {
	set := &dataset{Data: d, inputs: inputs(p, cfg), byID: map[string]int32{}, named: d.Expected != ""}
	set.Expected = cmp.Or(d.Expected, "expected")
	if runs := past.RunsOf(ctx); runs != nil && d.File == "" && d.Rows == nil {
		if err := set.addRuns(ctx, runs); err != nil {
			return nil, err
		}
		return set, set.choose()
	}
	source, err := d.open()
	if err != nil {
		return nil, err
	}
	defer source.close()
	name := source.name
	var faults []string
	further := 0 // number of faulty rows beyond maxFaults
	for row, err := range source.rows {
		if err == nil {
			err = set.add(ctx, row)
		}
		switch {
		case err == nil:
		case len(faults) < maxFaults:
			faults = append(faults, fmt.Sprintf("row %d: %v", row.number, err))
		default:
			further++
		}
	}
	switch {
	case further > 0:
		return nil, fmt.Errorf("%s: %s; and %s more", name, strings.Join(faults, "; "), text.Plural(further, "row"))
	case len(faults) > 0:
		return nil, fmt.Errorf("%s: %s", name, strings.Join(faults, "; "))
	case len(set.rows) == 0 && d.Split != "":
		return nil, fmt.Errorf("%s has no rows of the split %q: name a value in the column split or, without such a column, dev or test", name, d.Split)
	case len(set.rows) == 0:
		return nil, fmt.Errorf("%s has no rows", name)
	}
	return set, set.choose()
}

// choose selects the cases of the evaluation from the rows.
func (set *dataset) choose() error {
	if set.Split == TestSplit {
		set.test = set.digest()
	}
	err := set.sample()
	set.sum = set.digest()
	return err
}

// inputs returns the types that a pipeline reads and that neither the pipeline nor the run provides. Stone's own types, such as
// the nodes of a plan, are omitted.
func inputs(p stone.Ashlar, cfg stone.Config) (need []tree.Input) {
	given := cfg.Input.Types()
	for _, in := range tree.Inputs(p) {
		if name := in.Type.Name(); !slices.Contains(given, name) {
			need = append(need, in)
		}
	}
	return need
}

// types returns the types of the inputs.
func (set *dataset) types() (all []dag.AnyType) {
	for _, in := range set.inputs {
		all = append(all, in.Type)
	}
	return all
}

// add binds a row, and keeps it if it belongs to the selection.
func (set *dataset) add(ctx context.Context, cols columns) error {
	var input []json.RawMessage
	for _, in := range set.inputs {
		value, err := set.bind(ctx, cols, in)
		if err != nil {
			return err
		}
		input = append(input, value)
	}
	var expected json.RawMessage
	if value, ok := cols.get(set.Expected); ok {
		set.expects = true
		var err error
		if expected, err = value.canonical(nil); err != nil {
			return fmt.Errorf("column %s: %w", set.Expected, err)
		}
	} else if set.named {
		return missing(cols, set.Expected, ", which should have the expected output")
	}
	r := set.newRow(input, expected)
	if set.Split != "" && !selected(set.Split, cols, r.id()) {
		return nil
	}
	for _, name := range set.labelled() {
		label, err := label(cols, name)
		if err != nil {
			return err
		}
		r.labels = append(r.labels, unique.Make(label).Value())
	}
	if _, known := set.byID[r.id()]; known {
		set.repeated++
		return nil
	}
	set.byID[r.id()] = int32(len(set.rows))
	set.rows = append(set.rows, r)
	return nil
}

// bind returns the content of an input. It comes from the column with the input's name, or else from the columns named after the
// input's properties, or else, if it is the only required input, from the column "input". An optional input without columns is
// nil. If all nodes of an input's type are read, the content is an array.
func (set *dataset) bind(ctx context.Context, cols columns, in tree.Input) (json.RawMessage, error) {
	name, want := in.Type.Name(), in.Type.Schema()
	if in.Many {
		want = nil // fits checks the items
	}
	data, fault := json.RawMessage(nil), error(nil)
	if value, ok := cols.get(name); ok {
		data, fault = value.fit(ctx, name, want)
	} else {
		if data, fault = gather(ctx, cols, want); data == nil || fault != nil {
			if value, ok := cols.get("input"); ok && set.sole(in) {
				data, fault = value.fit(ctx, "input", want)
			}
		}
	}
	switch {
	case fault != nil:
		return nil, fault
	case data == nil && in.Optional:
		return nil, nil
	case data == nil:
		return nil, fmt.Errorf("no column for the input %q: name one %s; the row has %s", name, wanted(in.Type, set.sole(in)), text.Cut(strings.Join(cols.names(), ", "), 80))
	case in.Many:
		items, err := itemsOf(data)
		for i := range items {
			if err == nil {
				err = fits(ctx, in.Type.Schema(), items[i])
			}
		}
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
	}
	return data, nil
}

func itemsOf(data json.RawMessage) (items []json.RawMessage, err error) {
	if json.Unmarshal(data, &items) != nil || items == nil {
		return nil, errors.New("want an array")
	}
	return items, nil
}

// gather returns an object that consists of the columns named after properties of a schema, or nil if there are no such columns.
func gather(ctx context.Context, cols columns, s *schema.Schema) (json.RawMessage, error) {
	object := map[string]json.RawMessage{}
	for _, field := range s.Properties() {
		value, ok := cols.get(field)
		if !ok {
			continue
		}
		part, _ := s.At(field)
		data, err := value.canonical(part)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", field, err)
		}
		object[field] = data
	}
	if len(object) == 0 {
		return nil, nil
	}
	data, err := canon.Append(nil, object)
	if err != nil {
		return nil, err
	}
	return data, fits(ctx, s, data)
}

// sole reports whether the input is the only required input.
func (set *dataset) sole(in tree.Input) bool {
	required := 0
	for _, other := range set.inputs {
		if !other.Optional {
			required++
		}
	}
	return required == 1 && !in.Optional
}

// wanted returns a description of the columns from which an input can be read, for errors.
func wanted(t dag.AnyType, sole bool) string {
	names := append([]string{t.Name()}, t.Schema().Properties()...)
	if sole {
		names = append(names, "input")
	}
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return strings.Join(slices.Compact(names), " or ")
}

func fits(ctx context.Context, s *schema.Schema, data []byte) error {
	err := s.Validate(ctx, data)
	if invalid, ok := errors.AsType[*schema.ValidationError](err); ok {
		p := invalid.Problems[0]
		if p.Path != "" {
			return fmt.Errorf("column %s: %s", p.Path, p.Message)
		}
		return errors.New(p.Message)
	}
	return err
}

func selected(split string, cols columns, id string) bool {
	if value, ok := cols.get("split"); ok {
		return value.text() == split
	}
	// The first byte determines the group of a case, so the split must not depend on it.
	half := map[bool]string{true: DevSplit, false: TestSplit}
	return half[id[2] < '8'] == split
}

// sample draws Data.N cases: those with the smallest digests of seed and case.
func (set *dataset) sample() error {
	set.whole = len(set.rows)
	switch {
	case set.N < 0:
		return fmt.Errorf("%d cases: want at least 1, or 0 for all", set.N)
	case set.N == 0 || set.N >= len(set.rows):
		return nil
	}
	rank := func(r row) string {
		sum := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, set.Seed), r.id()...))
		return string(sum[:])
	}
	type ranked struct {
		at   int
		rank string
	}
	order := make([]ranked, len(set.rows))
	for i, r := range set.rows {
		order[i] = ranked{i, rank(r)}
	}
	slices.SortFunc(order, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	order = order[:set.N]
	slices.SortFunc(order, func(a, b ranked) int { return cmp.Compare(a.at, b.at) })
	drawn := make([]row, set.N)
	clear(set.byID)
	for i, o := range order {
		drawn[i] = set.rows[o.at]
		set.byID[drawn[i].id()] = int32(i)
	}
	set.rows = drawn
	return nil
}

// digest returns a digest of the cases that does not depend on their order.
func (set *dataset) digest() string {
	ids := make([]string, len(set.rows))
	for i, r := range set.rows {
		ids[i] = r.id()
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(ids, "\n")))
	return hex.EncodeToString(sum[:16])
}

func (d Data) open() (*source, error) {
	switch {
	case d.File == "" && d.Rows == nil:
		return nil, errors.New("the evaluation has no data: name a file of JSON Lines or CSV")
	case d.File == "":
		return &source{"the data", values(d.Rows), func() error { return nil }}, nil
	}
	f, err := os.Open(d.File)
	if err != nil {
		return nil, err
	}
	text := bufio.NewReader(f)
	if mark, err := text.Peek(len(byteOrder)); err == nil && string(mark) == byteOrder {
		_, _ = text.Discard(len(byteOrder)) // the mark has already been read
	}
	rows := lines(text)
	if strings.EqualFold(filepath.Ext(d.File), ".csv") {
		if rows, err = table(text); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", d.File, err), f.Close())
		}
	}
	return &source{d.File, rows, f.Close}, nil
}

// byteOrder is the byte order mark that spreadsheets and editors write at the beginning of a file.
const byteOrder = "\ufeff"

// Columns returns the names of the columns in the first row.
func (d Data) Columns() ([]string, error) {
	source, err := d.open()
	if err != nil {
		return nil, err
	}
	defer source.close()
	next, stop := iter.Pull2(source.rows)
	defer stop()
	switch row, err, ok := next(); {
	case !ok:
		return nil, fmt.Errorf("%s has no rows", source.name)
	case err != nil:
		return nil, fmt.Errorf("%s: row %d: %w", source.name, row.number, err)
	default:
		return row.names(), nil
	}
}
