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
	"github.com/stonelayer/stone/internal/fleet"
	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/journal/internal/outline"
	"github.com/stonelayer/stone/step"
)

// result is the row of a result to be written, together with the node that the step created, if any.
type result struct {
	*Row
	made   *dag.Node
	failed bool
	costs  bool // the step has declared a cost, and the result is not reused
	child  bool // the step has waited for a child (see journal.Elsewhere)
	event  outline.Event
}

// head is stored as JSON in a row. It contains the fields that the database does not need. The Content of Record is stored in the
// row itself.
type head struct {
	Kind    string       `json:"kind,omitempty"`  // Row.place reads Kind and Loose without a decoder
	Loose   bool         `json:"loose,omitempty"` // see step.Key
	Name    string       `json:"name,omitempty"`
	From    string       `json:"from,omitempty"` // ID of the run from which the result was reused
	At      int64        `json:"at"`             // Unix milliseconds, only for people
	Usage   budget.Usage `json:"usage,omitzero"` // set for a step that declared a cost
	Record  *step.Record `json:"record,omitempty"`
	Started []intent     `json:"started,omitempty"` // steps that start; the row's content is their digests

	// Only for a detached row, which has no digest of its own.
	Step string `json:"step,omitempty"` // digest of the step
	Path string `json:"path,omitempty"`
}

// An intent announces that the work of a step starts.
type intent struct {
	digest dag.ID
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`

	Declared *budget.Amount `json:"declared,omitempty"` // declared cost; nil if none

	text  []byte // the intent as JSON
	claim fleet.Claim
	again bool // the step has started before
}

func newIntent(ctx context.Context, key step.Key) (*intent, error) {
	i := &intent{digest: key.Digest, claim: fleet.Claimed(ctx), Path: key.Path, Kind: key.Kind, Name: key.Name}
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

// intentRow returns the row for the steps that start in one commit.
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

// ids yields the IDs that are concatenated in a column.
func ids(column []byte) iter.Seq[dag.ID] {
	return func(yield func(dag.ID) bool) {
		for ; len(column) >= len(dag.ID{}); column = column[len(dag.ID{}):] {
			if !yield(dag.ID(column[:len(dag.ID{})])) {
				return
			}
		}
	}
}

// id returns the ID in a column. It returns the zero ID for an empty column.
func id(column []byte) (id dag.ID) {
	copy(id[:], column)
	return id
}

// newResult returns the row for a result. If the result was reused, from is the ID of the run that it comes from.
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

// detached returns a copy of a row that no longer counts as the result of its step. It is used for a failure to retry, whose cost
// still counts, and for a result put aside.
func detached(r *Row, h head) (*Row, error) {
	f := &Row{Run: r.Run, Seq: r.Seq}
	h.Step, h.Path = id(r.Digest).String(), r.Path
	return f, f.fill(h, *h.Record, nil)
}

// nodeRow returns the row for a node that no step created.
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

// place returns the place of a result. It returns false for a loose result, which has no place.
func (r *Row) place() (dag.ID, bool) {
	text, ok := bytes.CutPrefix(r.Head, []byte(`{"kind":"`))
	kind, rest, found := bytes.Cut(text, []byte(`"`))
	if !ok || !found || bytes.HasPrefix(rest, []byte(`,"loose":true`)) {
		return dag.ID{}, false
	}
	return step.Place(string(kind), r.Path), true
}

func (r *Row) isResult() bool { return r.Digest != nil }
func (r *Row) isIntent() bool { return r.Digest == nil && r.Node == nil } // also true for a detached row

var (
	errChanged = errors.New("was changed after it was written")
	errLost    = errors.New("is lost")
)

// check returns an error if a row was changed after it was written. It checks the content only if that was read.
func (r *Row) check(content bool) error {
	if !unbroken(r.Seal, r.Content, content, r.Digest, r.Reuse, r.Node, r.Parents, []byte(r.Path), r.Head) {
		return errChanged
	}
	return nil
}

// open decodes the head of a row. The row must have been checked.
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

const sealBytes = 8 // for the fields, and again for the content

// seal returns a checksum of some fields and of content. The content has its own half of the checksum, so the fields can be
// checked without it. The checksum is short because it is meant to detect accidents, not attacks.
func seal(content []byte, fields ...[]byte) []byte {
	sum := sha256.Sum256(content)
	return append(sealFields(sum[:sealBytes], fields), sum[:sealBytes]...)
}

func sealFields(content []byte, fields [][]byte) []byte {
	var some [1 << 10]byte // enough for most rows
	text := some[:0]
	for _, field := range append(fields, content) {
		text = binary.LittleEndian.AppendUint64(text, uint64(len(field)))
		text = append(text, field...)
	}
	sum := sha256.Sum256(text)
	return sum[:sealBytes:sealBytes]
}

// unbroken reports whether the fields, and the content if it was read, match a seal.
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
