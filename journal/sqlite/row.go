package sqlite

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// row is a row of the table of records.
type row struct {
	made *dag.Node // the node of the record, if it has one

	digest, reuse, node, parents []byte // nil for NULL
	path, kind, name             sql.NullString
	typ, time                    string
	content, meta, failure       []byte
	sum                          []byte
}

func newRow(key stone.Key, rec stone.Record) (*row, error) {
	r, err := recordRow(rec)
	if err != nil {
		return nil, fmt.Errorf("record of %s: %w", key.Path, err)
	}
	r.digest = key.Digest[:]
	if key.Reuse != (dag.ID{}) {
		r.reuse = key.Reuse[:]
	}
	r.path, r.kind, r.name = text(key.Path), text(key.Kind), text(key.Name)
	if rec.Node != nil {
		r.made = rec.Node
		r.addNode(rec.Node)
	}
	return r, nil
}

// nodeRow is the row of a node that no step made.
func nodeRow(n *dag.Node) (*row, error) {
	r, err := recordRow(stone.Record{Type: n.Type(), Content: n.Content(), Meta: n.Meta(), Time: n.Time()})
	if err != nil {
		return nil, fmt.Errorf("record of node %s: %w", n, err)
	}
	r.addNode(n)
	return r, nil
}

func text(s string) sql.NullString { return sql.NullString{String: s, Valid: true} }

func (r *row) addNode(n *dag.Node) {
	id := n.ID()
	r.node, r.parents = id[:], []byte{}
	for _, p := range n.Parents() {
		id := p.ID()
		r.parents = append(r.parents, id[:]...)
	}
}

func recordRow(rec stone.Record) (r *row, err error) {
	r = &row{typ: rec.Type, time: rec.Time.Format(time.RFC3339Nano), content: bytes.Clone(rec.Content), sum: rec.Sum[:]}
	if len(rec.Meta) > 0 {
		if r.meta, err = json.Marshal(rec.Meta); err != nil {
			return nil, err
		}
	}
	if rec.Failure != nil {
		r.failure, err = json.Marshal(rec.Failure)
	}
	return r, err
}

// args are the columns in the order of the schema.
func (r *row) args(seq, run int64) []any {
	return []any{seq, run, null(r.digest), null(r.reuse), r.path, r.kind, r.name, null(r.node), null(r.parents),
		r.typ, null(r.content), nullText(r.meta), r.time, nullText(r.failure), r.sum, r.seal()}
}

func null(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

func nullText(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

// seal stands for everything that is replayed: a stone.Record has a sum over its
// type, content and failure only. It is short, since it is against accidents.
func (r *row) seal() []byte {
	h := sha256.New()
	var size [8]byte
	for _, field := range [...][]byte{r.digest, r.reuse, r.node, r.parents, []byte(r.typ), r.content, r.meta, []byte(r.time), r.failure, r.sum} {
		binary.LittleEndian.PutUint64(size[:], uint64(len(field)))
		h.Write(size[:])
		h.Write(field)
	}
	return h.Sum(nil)[:8]
}

// columns are those that scan reads.
const columns = "digest, reuse, path, node, parents, type, content, meta, time, failure, sum, seal"

// scan reads a row. Reader is *sql.Row or *sql.Rows.
func scan(reader interface{ Scan(...any) error }) (sealed, error) {
	r := sealed{row: new(row)}
	err := reader.Scan(&r.digest, &r.reuse, &r.path, &r.node, &r.parents, &r.typ, &r.content, &r.meta, &r.time, &r.failure, &r.sum, &r.seal)
	return r, err
}

// record makes the record of a row that was read, unless the row was changed.
func (r sealed) record() (stone.Record, error) {
	rec := stone.Record{Type: r.typ, Content: r.content, Sum: id(r.sum), Replayed: true}
	if !bytes.Equal(r.row.seal(), r.seal) {
		return rec, errors.New("was changed after it was written")
	}
	var err error
	if rec.Time, err = time.Parse(time.RFC3339Nano, r.time); err != nil {
		return rec, fmt.Errorf("has no time: %w", err)
	}
	if r.meta != nil {
		err = json.Unmarshal(r.meta, &rec.Meta)
	}
	if r.failure != nil {
		err = errors.Join(err, json.Unmarshal(r.failure, &rec.Failure))
	}
	if err != nil {
		return rec, fmt.Errorf("cannot be read: %w", err)
	}
	return rec, nil
}
