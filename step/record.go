package step

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/terms"
)

// A Key identifies a step. It is computed before the step's work starts.
type Key struct {
	RunID string // the id of the run
	Path  string // the step's address in the tree; Path and Kind together are unique within a run, unless Loose is set
	Kind  string // "leaf", "decision", "step" or "value"
	Name  string // the name of the ashlar or step
	// Digest identifies the step's work within the run. It covers Kind, Path, the fingerprint of the ashlar, and the ids of the
	// nodes that the ashlar and its Children read. For a Step, it also covers the body that contains the step, the step's name
	// and its input.
	Digest dag.ID
	// Loose is set if the run may record other work with the same Path and Kind, which is the case for glue, because it has its
	// parent's path, and for a Step that several goroutines call in turn.
	Loose bool
	// Replace is set to repeat the work: earlier records with the same Path and Kind are ignored, and the new record replaces
	// them.
	Replace bool
	// Reuse identifies the step across runs. It covers the fingerprint of the ashlar, the contents of the nodes that the ashlar
	// and its Children read, the text that the ashlar renders from them, and the round, lane, visit or attempt. It is zero unless
	// the ashlar is Reusable or cached.
	Reuse dag.ID
	// Fresh is set if the ashlar is cached. A result that any run of the same tenant has recorded under Reuse at or after Fresh
	// is then reused, whatever the run's reuse setting.
	Fresh time.Time
}

// Value is the Kind of a recorded value; see stone.Value.
const Value = "value"

// Placed reports whether the record at the key's place is found even if it records other work.
func (k Key) Placed() bool { return !k.Loose && !k.Replace }

// Place returns a digest of the key's Kind and Path. Several Loose keys of a run may have the same place.
func (k Key) Place() dag.ID { return Place(k.Kind, k.Path) }

// Place returns a digest of kind and path, which identifies the place of a key within its run.
func Place(kind, path string) dag.ID { return sha256.Sum256([]byte(kind + "\x00" + path)) }

// A Recorder records the steps of runs: every leaf, decision, Step and Value. Do may be called from several goroutines at once,
// but within a run never concurrently for the same key.
//
// If the recorder itself fails, the run stops: running steps finish, no new ones start and no Rescue runs. The failure has kind
// "recorder-failed", or the kind of the *stone.Failure returned. A process that is about to exit stops its runs in this way: its
// Recorder returns an error for every step that is not recorded yet.
//
// A Recorder may have a method Clean(string) string, which removes secrets from failures that the run itself creates, such as the
// failure of a Scoped body. Do can clean the records that it stores.
//
// It may have a method Has(Key) bool, which is called with a Key whose RunID, Path, Kind "step" and Name are set. Has reports
// whether another process has recorded a step with that name in the body above Path, whatever the step's Digest and however often
// the body uses the name. Has must not wait for the store, because accounts call it before each step that costs something.
//
// It may have a method Settled(run string) (wait func(now bool) error), which returns a nil function if all records of the run
// are durable. Otherwise, the returned function wait blocks until they are durable, or returns an error if they cannot be made
// durable; if now is set, the recorder writes them at once. If a Recorder has this method, its records need not be durable when
// Do returns as long as only code without effects has read them, and the intents of leaves that declare no effects need not be
// durable before the work starts. All of these must be durable before the work of any other step starts. The run then reports
// only durable results to its watchers, and waits for all other records before it ends.
//
// To record whole runs as well, implement stone.RunRecorder.
type Recorder interface {
	// If there is a record for the key, Do returns it with Replayed set. Otherwise, Do calls work once, records the result and
	// returns the new record.
	//
	// A record belongs to the key if its RunID and Digest are equal to the key's, or if its RunID is different and its Reuse is
	// equal and not zero: within a run, Reuse does not count. A record that is Unshared or has a Failure is never found by its
	// Reuse. If another process recorded the key while work was running, the first record is kept and returned with Replayed set.
	//
	// Unless the key is Loose or Replace, Do also finds a record of other work at the same place: if the run has no record with
	// the Digest, but has records with the Path and Kind that are not Loose, Do returns the newest of these, with Replayed and
	// Differs set, and does not call work.
	//
	// A key of kind "value" is used for work without effects or costs. Its record need not be durable when Do returns, but must
	// be durable before any later step is recorded.
	//
	// If work returns an error, Do returns it and records nothing, because the work is not finished. The function work does not
	// panic. Its result is recorded even if ctx is done by then, because it may have cost money.
	//
	// The argument ctx is the context of the step and can be passed to stone.In. Do must pass to work either ctx or a context
	// derived from it: the body reads the values of this context and is canceled with it.
	Do(ctx context.Context, key Key, work func(context.Context) (Record, error)) (Record, error)
}

// A Record is the result of a step. Its JSON is sufficient to replay the step.
type Record struct {
	// For a leaf, Type, Content, Meta and Time are the fields of its node. For a
	// decision or a step, Content is its value.
	Type    string            `json:"type,omitempty"`
	Content json.RawMessage   `json:"content,omitempty"`
	Meta    map[string]string `json:"meta,omitempty"`
	Time    time.Time         `json:"time"`
	// Failure is set, instead of Type and Content, if the step failed. Failures are recorded too, because otherwise a resumed run
	// could take another branch.
	Failure *dag.FailureContent `json:"failure,omitempty"`
	// Kept holds the nodes of a leaf that called Keep or Await, together with their parents. It is used only for replay.
	Kept json.RawMessage `json:"kept,omitempty"`
	// Unshared is set if the body has called RunDynamic or Await, which read nodes that the key does not cover. Other runs may
	// not reuse the record.
	Unshared bool `json:"unshared,omitempty"`
	// Sum is a hash of Type, Content, Failure and Kept, without times and metas, so that equal runs have equal sums. If a record
	// does not match its Sum, it was modified after it was recorded, and replaying it is an error.
	Sum dag.ID `json:"sum"`

	// Node is the node that a leaf has produced in this run, for recorders that store nodes. All nodes on which it depends can be
	// reached through its parents. Node is nil for decisions, Steps, Values and replayed records.
	Node *dag.Node `json:"-"`
	// Replayed reports whether the record existed before this call of Do.
	Replayed bool `json:"-"`
	// Path is the path at which a replayed record was recorded. It can differ from the key's Path if several goroutines call the
	// step in turn.
	Path string `json:"-"`
	// Differs reports whether the replayed record has the key's place but a different Digest.
	Differs bool `json:"-"`
}

// ReusedFrom returns a copy of the record for use in another run. In the copy's Meta, "reused-from" is run, the id of the run
// that recorded it.
func (rec Record) ReusedFrom(run string) Record {
	meta := maps.Clone(rec.Meta)
	if meta == nil {
		meta = map[string]string{}
	}
	meta[terms.From] = run
	rec.Meta = meta
	return rec
}

// Seal returns the hash that belongs in rec.Sum. The content must be canonical JSON.
func (rec Record) Seal() dag.ID {
	h := sha256.New()
	h.Write([]byte(rec.Type + "\x00"))
	if rec.Failure != nil {
		h.Write([]byte("failure\x00" + string(rec.Failure.Kind) + "\x00" + rec.Failure.Reason))
	} else {
		h.Write(rec.Content)
	}
	if rec.Kept != nil {
		h.Write([]byte("\x00kept\x00"))
		h.Write(timeless(rec.Kept))
	}
	return dag.ID(h.Sum(nil))
}

// timeless returns the part of Kept that Sum covers: everything except times and metas, which differ between equal runs.
func timeless(kept json.RawMessage) []byte {
	var rec struct {
		Awaited bool `json:"awaited,omitempty"`
		Nodes   []struct {
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
			Parents []int           `json:"parents,omitempty"`
		} `json:"nodes,omitempty"`
	}
	if json.Unmarshal(kept, &rec) != nil {
		return kept
	}
	raw, err := canon.Append(nil, rec)
	if err != nil {
		return kept
	}
	return raw
}
