package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/jsonv2"
)

// row is a row of the table of records.
type row struct {
	seq  int64
	made *dag.Node // the node of the record, if it has one

	digest, reuse, node, parents []byte // nil for NULL
	head, content                []byte
}

// head is what a row holds as JSON: what the tables need not know. Record lacks
// its content, which has a column of its own.
type head struct {
	Path   string        `json:"path,omitempty"`
	Kind   string        `json:"kind,omitempty"`
	Name   string        `json:"name,omitempty"`
	From   string        `json:"from,omitempty"` // run from which it was reused
	At     int64         `json:"at"`             // milliseconds of Unix time, for people
	Record *stone.Record `json:"record,omitempty"`
	Begun  []*intent     `json:"begun,omitempty"` // in a row that has nothing but their digests, as content
	Step   string        `json:"step,omitempty"`  // digest of the step, in the row of a failure that was forgotten
}

// An intent says that the work of a step begins.
type intent struct {
	digest   dag.ID
	Path     string         `json:"path"`
	Kind     string         `json:"kind"`
	Name     string         `json:"name"`
	Declared *budget.Amount `json:"declared,omitempty"` // what it may cost; nil for nothing
}

// beginning is the intent of a step.
func beginning(ctx context.Context, key stone.Key) *intent {
	i := &intent{digest: key.Digest, Path: key.Path, Kind: key.Kind, Name: key.Name}
	if amount := budget.Declared(ctx); amount != (budget.Amount{}) {
		i.Declared = &amount
	}
	return i
}

// intentRow is the row of what is begun in one commit.
func intentRow(begun []*intent, at time.Time) (*row, error) {
	r := &row{content: make([]byte, 0, len(begun)*len(dag.ID{}))}
	for _, i := range begun {
		r.content = append(r.content, i.digest[:]...)
	}
	var err error
	r.head, err = jsonv2.Marshal(head{At: at.UnixMilli(), Begun: begun})
	return r, err
}

// ids ranges over the ids that stand one after the other in a column.
func ids(column []byte) iter.Seq[dag.ID] {
	return func(yield func(dag.ID) bool) {
		for ; len(column) >= len(dag.ID{}); column = column[len(dag.ID{}):] {
			if !yield(dag.ID(column[:len(dag.ID{})])) {
				return
			}
		}
	}
}

// resultRow is the row of a result. From is the run from which it was reused.
func resultRow(key stone.Key, rec stone.Record, from string, at time.Time) (*row, error) {
	r, err := recordRow(head{Path: key.Path, Kind: key.Kind, Name: key.Name, From: from, At: at.UnixMilli()}, rec)
	if err != nil {
		return nil, fmt.Errorf("record of %s: %w", key.Path, err)
	}
	r.digest = key.Digest[:]
	if key.Reuse != (dag.ID{}) && rec.Failure == nil && !rec.Unshared {
		r.reuse = key.Reuse[:]
	}
	if rec.Node != nil {
		r.made = rec.Node
		r.addNode(rec.Node)
	}
	return r, nil
}

// nodeRow is the row of a node that no step made.
func nodeRow(n *dag.Node, at time.Time) (*row, error) {
	rec := stone.Record{Type: n.Type(), Content: n.Content(), Meta: n.Meta(), Time: n.Time()}
	r, err := recordRow(head{At: at.UnixMilli()}, rec)
	if err != nil {
		return nil, fmt.Errorf("record of node %s: %w", n, err)
	}
	r.addNode(n)
	return r, nil
}

func recordRow(h head, rec stone.Record) (r *row, err error) {
	r = &row{content: bytes.Clone(rec.Content)}
	rec.Content = nil
	h.Record = &rec
	r.head, err = jsonv2.Marshal(h)
	return r, err
}

func (r *row) addNode(n *dag.Node) {
	id := n.ID()
	r.node, r.parents = id[:], []byte{}
	for _, p := range n.Parents() {
		id := p.ID()
		r.parents = append(r.parents, id[:]...)
	}
}

// args are the columns in the order of the schema.
func (r *row) args(seq int64) []any {
	return []any{seq, null(r.digest), null(r.reuse), null(r.node), null(r.parents), string(r.head), r.seal(), null(r.content)}
}

func null(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// seal stands for everything that is replayed: a stone.Record has a sum over a
// part of it only. It is short, since it is against accidents.
func (r *row) seal() []byte {
	h := sha256.New()
	var size [8]byte
	for _, field := range [...][]byte{r.digest, r.reuse, r.node, r.parents, r.head, r.content} {
		binary.LittleEndian.PutUint64(size[:], uint64(len(field)))
		h.Write(size[:])
		h.Write(field)
	}
	return h.Sum(nil)[:8]
}

// sealed is a row with the seal that the file has of it.
type sealed struct {
	*row
	seal []byte
}

// columns are those that scan reads.
const columns = "seq, digest, reuse, node, parents, head, seal, content"

// scanner reads rows. What the driver gives is copied once for a whole row, and
// not column by column: a run that is resumed reads all that it has.
type scanner struct {
	seq     int64
	columns [7]column
	into    []any
}

// column is what the driver gave, which is the driver's until it is asked again.
type column struct{ value []byte }

// Scan implements sql.Scanner.
func (c *column) Scan(value any) error {
	switch value := value.(type) {
	case nil:
		c.value = nil
	case []byte:
		c.value = value
	case string:
		c.value = []byte(value)
	default:
		return fmt.Errorf("a column is of type %T: want a text or bytes", value)
	}
	return nil
}

func newScanner() *scanner {
	s := new(scanner)
	s.into = append(s.into, &s.seq)
	for i := range s.columns {
		s.into = append(s.into, &s.columns[i])
	}
	return s
}

// scan reads a row, and into more what stands behind its columns. Reader is
// *sql.Row or *sql.Rows.
func (s *scanner) scan(reader interface{ Scan(...any) error }, more ...any) (sealed, error) {
	if err := reader.Scan(append(s.into, more...)...); err != nil {
		return sealed{row: new(row)}, err
	}
	size := 0
	for _, c := range s.columns {
		size += len(c.value)
	}
	all := make([]byte, 0, size)
	take := func(i int) []byte {
		if s.columns[i].value == nil {
			return nil
		}
		from := len(all)
		all = append(all, s.columns[i].value...)
		return all[from:len(all):len(all)]
	}
	r := &row{seq: s.seq, digest: take(0), reuse: take(1), node: take(2), parents: take(3), head: take(4)}
	seal := take(5)
	r.content = take(6)
	return sealed{r, seal}, nil
}

// open returns what a row holds, unless it was changed.
func (r sealed) open() (head, error) {
	h := head{Record: new(stone.Record)}
	if !bytes.Equal(r.row.seal(), r.seal) {
		_ = jsonv2.Unmarshal(r.head, &h) // for the name of its step, if it has one still
		return h, errors.New("was changed after it was written")
	}
	if err := jsonv2.Unmarshal(r.head, &h); err != nil {
		return h, fmt.Errorf("cannot be read: %w", err)
	}
	if h.Begun == nil {
		h.Record.Content, h.Record.Replayed = r.content, true
		return h, nil
	}
	i := 0
	for digest := range ids(r.content) {
		if i < len(h.Begun) {
			h.Begun[i].digest = digest
		}
		i++
	}
	return h, nil
}

// id is the id in a column, zero if there is none.
func id(column []byte) (id dag.ID) {
	copy(id[:], column)
	return id
}
