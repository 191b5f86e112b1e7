package log

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/flight"
	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/journal/internal/outline"
	"github.com/stonelayer/stone/step"
)

// result is a row to be written, with the node of the record, if any.
type result struct {
	*Row
	made   *dag.Node
	failed bool
	costs  bool // the step declared a cost, and the result is not reused
	child  bool // the step has waited for a run elsewhere
	event  outline.Event
}

// head is the JSON of a row: the fields that the database does not need. The Content of Record is in the row.
type head struct {
	Kind    string       `json:"kind,omitempty"`  // place reads these two fields without a decoder
	Loose   bool         `json:"loose,omitempty"` // see step.Key
	Name    string       `json:"name,omitempty"`
	From    string       `json:"from,omitempty"` // run from which it was reused
	At      int64        `json:"at"`             // milliseconds of Unix time, for people
	Usage   budget.Usage `json:"usage,omitzero"` // for a step that declared a cost
	Record  *step.Record `json:"record,omitempty"`
	Started []intent     `json:"started,omitempty"` // for a row whose content is their digests

	// Of a detached row, which has no digest of its own.
	Step string `json:"step,omitempty"` // its digest
	Path string `json:"path,omitempty"`
}

// An intent announces that the work of a step starts.
type intent struct {
	digest dag.ID
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`

	Declared *budget.Amount `json:"declared,omitempty"` // declared cost; nil if none

	text  []byte // JSON
	claim flight.Claim
	again bool // it has started before
}

func newIntent(ctx context.Context, key step.Key) (*intent, error) {
	i := &intent{digest: key.Digest, claim: flight.Claimed(ctx), Path: key.Path, Kind: key.Kind, Name: key.Name}
	if amount := record.Declared(ctx); amount != (budget.Amount{}) {
		i.Declared = &amount
	}
	if !utf8.ValidString(key.Path) || !utf8.ValidString(key.Name) {
		return nil, fmt.Errorf("step %q: its name is not UTF-8: rename it", key.Name)
	}
	var err error
	i.text, err = jsonv2.Marshal(i)
	return i, err
}

// intentRow returns the row of the steps that start in one commit.
func intentRow(starting []*intent, at time.Time) *Row {
	r := &Row{Content: make([]byte, 0, len(starting)*len(dag.ID{}))}
	r.Head = strconv.AppendInt([]byte(`{"at":`), at.UnixMilli(), 10)
	r.Head = append(r.Head, `,"started":[`...)
	for n, i := range starting {
		if n > 0 {
			r.Head = append(r.Head, ',')
		}
		r.Head = append(r.Head, i.text...)
		r.Content = append(r.Content, i.digest[:]...)
	}
	r.Head = append(r.Head, "]}"...)
	r.seal()
	return r
}

// ids ranges over the ids concatenated in a column.
func ids(column []byte) iter.Seq[dag.ID] {
	return func(yield func(dag.ID) bool) {
		for ; len(column) >= len(dag.ID{}); column = column[len(dag.ID{}):] {
			if !yield(dag.ID(column[:len(dag.ID{})])) {
				return
			}
		}
	}
}

// id returns the id in a column, zero for an empty one.
func id(column []byte) (id dag.ID) {
	copy(id[:], column)
	return id
}

// newResult returns the row of a result. From is the run from which it was reused, or empty.
func newResult(ctx context.Context, key step.Key, rec step.Record, from string, at time.Time) (*result, error) {
	r := &result{Row: &Row{Digest: key.Digest[:], Path: key.Path}, made: rec.Node, failed: rec.Failure != nil}
	if key.Reuse != (dag.ID{}) && rec.Failure == nil && !rec.Unshared {
		r.Reuse = key.Reuse[:]
	}
	h := head{Kind: key.Kind, Loose: key.Loose, Name: key.Name, From: from, At: at.UnixMilli()}
	if r.costs = from == "" && record.Declared(ctx) != (budget.Amount{}); r.costs {
		h.Usage = record.Usage(rec)
	}
	r.child, _ = record.Child(ctx)
	if err := r.fill(h, rec, rec.Node); err != nil {
		return nil, fmt.Errorf("record of %s: %w", key.Path, err)
	}
	h.Record = &rec
	r.event = h.event(key.Path, 0)
	return r, nil
}

// detached returns a row that is not the result of its step: a forgotten failure, which
// keeps its cost, or a result set aside.
func detached(r *Row, h head) (*Row, error) {
	f := &Row{Run: r.Run, Seq: r.Seq}
	h.Step, h.Path = id(r.Digest).String(), r.Path
	return f, f.fill(h, *h.Record, nil)
}

// nodeRow returns the row of a node that no step made.
func nodeRow(n *dag.Node, at time.Time) (*Row, error) {
	rec := step.Record{Type: n.Type(), Content: n.Content(), Meta: n.Meta(), Time: n.Time()}
	r := new(Row)
	if err := r.fill(head{At: at.UnixMilli()}, rec, n); err != nil {
		return nil, fmt.Errorf("record of node %s: %w", n, err)
	}
	return r, nil
}

func (r *Row) fill(h head, rec step.Record, n *dag.Node) (err error) {
	r.Content, rec.Content = bytes.Clone(rec.Content), nil
	h.Record = &rec
	if r.Head, err = jsonv2.Marshal(h); err != nil {
		return err
	}
	if n != nil {
		id := n.ID()
		r.Node, r.Parents = id[:], []byte{}
		for _, p := range n.Parents() {
			id := p.ID()
			r.Parents = append(r.Parents, id[:]...)
		}
	}
	r.seal()
	return nil
}

func (r *Row) seal() {
	r.Seal = seal(r.Content, r.Digest, r.Reuse, r.Node, r.Parents, []byte(r.Path), r.Head)
}

// place returns the place of a result, and false if it is loose.
func (r *Row) place() (dag.ID, bool) {
	text, ok := bytes.CutPrefix(r.Head, []byte(`{"kind":"`))
	kind, rest, found := bytes.Cut(text, []byte(`"`))
	if !ok || !found || bytes.HasPrefix(rest, []byte(`,"loose":true`)) {
		return dag.ID{}, false
	}
	return step.Place(string(kind), r.Path), true
}

func (r *Row) isResult() bool { return r.Digest != nil }
func (r *Row) isIntent() bool { return r.Digest == nil && r.Node == nil } // or a detached row

var (
	errChanged = errors.New("was changed after it was written")
	errLost    = errors.New("is lost")
)

// check returns an error if a row was changed. It includes the content if that was read.
func (r *Row) check(content bool) error {
	if !unbroken(r.Seal, r.Content, content, r.Digest, r.Reuse, r.Node, r.Parents, []byte(r.Path), r.Head) {
		return errChanged
	}
	return nil
}

// open returns the head of a row that was checked.
func (r *Row) open() (head, error) {
	h := head{Record: new(step.Record)}
	if err := jsonv2.Unmarshal(r.Head, &h); err != nil {
		return h, fmt.Errorf("cannot be read: %w", err)
	}
	if h.Started == nil {
		h.Record.Content, h.Record.Replayed = r.Content, true
		return h, nil
	}
	i := 0
	for digest := range ids(r.Content) {
		if i < len(h.Started) {
			h.Started[i].digest = digest
		}
		i++
	}
	return h, nil
}

const sealBytes = 8 // for the fields, and for the content

// seal returns a checksum of fields and a content. The content has its own half, so the fields can be checked without it. It is
// short: it detects accidents, not attacks.
func seal(content []byte, fields ...[]byte) []byte {
	sum := sha256.Sum256(content)
	return append(sealFields(sum[:sealBytes], fields), sum[:sealBytes]...)
}

func sealFields(content []byte, fields [][]byte) []byte {
	var some [1 << 10]byte // more than most rows have
	text := some[:0]
	for _, field := range append(fields, content) {
		text = binary.LittleEndian.AppendUint64(text, uint64(len(field)))
		text = append(text, field...)
	}
	sum := sha256.Sum256(text)
	return sum[:sealBytes:sealBytes]
}

// unbroken checks fields, and the content if it was read, against a seal.
func unbroken(seal, content []byte, read bool, fields ...[]byte) bool {
	if len(seal) != 2*sealBytes {
		return false
	}
	if read {
		sum := sha256.Sum256(content)
		if !bytes.Equal(sum[:sealBytes], seal[sealBytes:]) {
			return false
		}
	}
	return bytes.Equal(sealFields(seal[sealBytes:], fields), seal[:sealBytes])
}
