package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/limit"
	"github.com/stonelayer/stone/step"
)

// Work is the delivery of a carrier: the orders of a run for one worker.
type Work struct {
	Run  string `json:"run"`
	ID   dag.ID `json:"id"`             // of the order, or of a batch
	Many bool   `json:"many,omitempty"` // a batch: its orders are on the board
}

// The keys of a board. A leaf has an id there, see leafOf. What belongs to a leaf is found by the first
// two parts of its key.
const (
	orderKey  = "order/"
	batchKey  = "batch/"
	resultKey = "result/"       // a further part makes it one that does not count for ever
	stepKey   = "step/"         // and a leaf, and the digest of a step within it
	placeKey  = "place/"        // and a leaf, and the place of a step within it: the digest of the first one there
	tryKey    = "try/"          // and a work id and the number of the attempt; or a leaf, a step within it that costs money and the number
	sliceKey  = "slice/"        // and a leaf, and the number of the slice
	holderKey = journal.Holders // and the number of the process among those that have held the run
	chargeKey = "charge/"       // and the number of a holder that has charged the run with the attempts so far
	partKey   = "part/"         // of a large content that orders read
	endKey    = "end/"          // after any other key: an empty item that ends a reading of all items before it
)

// leafOf returns the id of a leaf on the board: its place, so that a changed program finds what was done
// there, or the digest of a leaf of which there may be several at one place.
func leafOf(key step.Key) dag.ID {
	if !key.Placed() {
		return key.Digest
	}
	return key.Place()
}

// id returns the id of the leaf.
func (o *order) id() dag.ID { return leafOf(o.Key) }

// large is from how many bytes on a content is on the board once, for all orders that read it.
const large = 4 << 10

// order is the item of an order.
type order struct {
	step.Order
	Rank   limit.Rank     `json:"rank,omitzero"`    // of the requests of its run
	Post   string         `json:"post"`             // random, of the call of Post
	Batch  *dag.ID        `json:"batch,omitempty"`  // in which it first went out
	Limits *budget.Limits `json:"limits,omitempty"` // slice 0, as in grant
	Whole  *budget.Limits `json:"whole,omitempty"`

	Holder int `json:"holder"` // number of the process that grants slice 0

	sliced bool // a further slice was granted before the worker read the order
}

// first returns slice 0 as a grant.
func (o *order) first() grant {
	return grant{Holder: o.Holder, Post: o.Post, Limits: o.Limits, Whole: o.Whole}
}

// grant is the item of a further slice, which replaces the earlier ones.
type grant struct {
	Holder int            `json:"holder"`           // number of the process that grants it
	Post   string         `json:"post"`             // random, of the call that grants it
	Limits *budget.Limits `json:"limits,omitempty"` // of all slices of the leaf together, nil for no limit
	Whole  *budget.Limits `json:"whole,omitempty"`  // what the run may spend on the leaf, nil for no limit
	Closed bool           `json:"closed,omitempty"` // nobody waits for the leaf: it must start no step that costs money
}

// account opens the account of the slice.
func (g *grant) account() *budget.Account {
	if g.Limits == nil || g.Whole == nil {
		return budget.New(budget.Limits{})
	}
	return budget.OpenSlice(*g.Limits, *g.Whole)
}

// try is the item of an attempt.
type try struct {
	Post     string        `json:"post"`              // random, of the attempt
	Key      *step.Key     `json:"key,omitempty"`     // of a step within the leaf, otherwise nil
	Declared budget.Amount `json:"declared,omitzero"` // what it may cost
	Holder   int           `json:"holder,omitempty"`  // of the slice that pays for it
	Slice    int           `json:"slice,omitempty"`   // the number of that slice
	Counted  int           `json:"counted,omitempty"` // earlier attempts that the account was charged with
}

// work returns the work of which the order is a part.
func (o *order) work() Work {
	if o.Batch != nil {
		return Work{Run: o.Key.RunID, ID: *o.Batch, Many: true}
	}
	return Work{Run: o.Key.RunID, ID: o.id()}
}

// result is the item of a result. It names what it is the result of.
type result struct {
	Leaf   dag.ID        `json:"leaf"`             // digest of the leaf, as in the order
	Grant  string        `json:"grant"`            // Post of the slice that came with the order
	Record *step.Record  `json:"record,omitempty"` // nil if the leaf comes back
	More   *budget.Quote `json:"more,omitempty"`   // it comes back for this: its slice refused it
	Slice  int           `json:"slice,omitempty"`  // number of its slice
	Spent  budget.Amount `json:"spent,omitzero"`
	Steps  int           `json:"steps,omitempty"` // number of steps within the leaf, which are on the board

	Notices []event.Notice `json:"notices,omitempty"` // of the worker
}

// final reports whether a result counts for ever.
func final(key string) bool { return len(key) == len(resultKey)+2*len(dag.ID{}) }

// idOf returns the id of the leaf in the key of a result.
func idOf(key string) (dag.ID, error) {
	id, _, _ := strings.Cut(strings.TrimPrefix(key, resultKey), "/")
	return dag.ParseID(id)
}

// item makes an item. Its JSON is not escaped, so that contents stay canonical.
func item(key string, v any) (journal.Item, error) {
	var data bytes.Buffer
	out := json.NewEncoder(&data)
	out.SetEscapeHTML(false)
	if err := out.Encode(v); err != nil {
		return journal.Item{}, fmt.Errorf("item %s: %w", key, err)
	}
	return journal.Item{Key: key, Data: data.Bytes()}, nil
}

func read(i journal.Item, to any) error {
	if err := json.Unmarshal(i.Data, to); err != nil {
		return fmt.Errorf("item %s: %w", i.Key, err)
	}
	return nil
}

// readStep reads a step within a leaf that has a result. A row that is not one of the leaf is refused.
func readStep(i journal.Item, leaf step.Key) (record.Done, error) {
	var done record.Done
	if err := read(i, &done); err != nil {
		return done, err
	}
	if k := done.Key; done.Record == nil || k.RunID != leaf.RunID || !address.Within(k.Path, leaf.Path) || i.Key != stepOf(leafOf(leaf), k.Digest) {
		return done, fmt.Errorf("item %s is no step of %s: it is refused", i.Key, leaf.Path)
	}
	return done, nil
}

func stepOf(leaf, step dag.ID) string { return stepKey + leaf.String() + "/" + step.String() }

func placeOfStep(leaf dag.ID, key step.Key) string {
	return placeKey + leaf.String() + "/" + key.Place().String()
}
