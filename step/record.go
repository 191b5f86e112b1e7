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

// A Key identifies a step. It is known before the step's work is done.
type Key struct {
	RunID string // the id of the run
	Path  string // the address in the tree; unique within a run together with Kind
	Kind  string // "leaf", "decision", "step" or "value"
	Name  string // the name of the ashlar or step
	// Digest identifies the work within its run. It covers Kind, Path, the fingerprint of the ashlar, and the ids of the nodes
	// that the ashlar and its Children read. For a Step, it covers the body that contains the step, the step's name and its
	// input.
	Digest dag.ID
	// Loose is set if other work may be recorded with the same Path and Kind. This is so for glue, which has its parent's path,
	// and for a Step that several goroutines call in turn.
	Loose bool
	// Replace is set to repeat the work: earlier records with the same Path and Kind are ignored, and the new record replaces
	// them.
	Replace bool
	// Reuse identifies the step across runs. It covers the fingerprint of the ashlar, the contents of the nodes that the ashlar
	// and its Children read, the text that the ashlar renders from them, and the round, lane, visit or attempt. It is zero unless
	// the ashlar is Reusable or cached.
	Reuse dag.ID
	// Fresh is set if the ashlar is cached: results of any run of the same tenant are then found under Reuse, whatever the run's
	// reuse setting, unless their Time is before Fresh.
	Fresh time.Time
}

// Value is the Kind of a recorded value; see stone.Value.
const Value = "value"

// Placed reports whether the record at the key's place is found even if it records other work.
func (k Key) Placed() bool { return !k.Loose && !k.Replace }

// Place returns an identifier derived from the key's Kind and Path. Keys that are Loose may share it.
func (k Key) Place() dag.ID { return Place(k.Kind, k.Path) }

// Place returns the place of a key with the given Kind and Path.
func Place(kind, path string) dag.ID { return sha256.Sum256([]byte(kind + "\x00" + path)) }

// A Recorder records the steps of a run: every leaf, every decision and every Step. Do is called from several goroutines at once,
// but within a run never concurrently for the same key.
//
// If the recorder itself fails, the run stops: running steps finish, no new ones start and no Rescue runs. The failure has kind
// "recorder-failed", or the kind of the *stone.Failure returned. A process that is about to end stops its runs in this way: its
// Recorder rejects every step that has not been recorded yet.
//
// A Recorder may have a method Clean(string) string, which removes secrets from failures that the run itself creates, such as the
// failure of a Scoped body. Do can clean the records that it stores.
//
// It may have a method Has(Key) bool, for a Key with RunID, Path, Kind "step" and Name. Has reports whether another process has
// recorded a step with that name in the body above Path, whatever the step's Digest and however often the body uses the name. Has
// must not wait for the store, because accounts call it before each step that costs something.
//
// It may have a method Settled(run string) (wait func(now bool) error), which returns nil if all records of the run are durable.
// Otherwise, wait blocks until they are durable, or returns an error if that is impossible; with now set, the recorder writes at
// once. If a Recorder has this method, its records need not be durable when Do returns as long as only code without effects has
// read them, and the intents of leaves that declare no effects need not be durable before the work starts. All of these must be
// durable before the work of any other step starts. The run then reports only durable results to its watchers, and waits for all
// other records before it ends.
//
// To record whole runs as well, implement stone.RunRecorder.
type Recorder interface {
	// Do returns the record under the key, with Replayed set. If the key has no
	// record, Do calls work once, records its result and returns it.
	//
	// Two records have the same key if they have the same RunID and Digest, or different RunIDs and the same non-zero Reuse: a
	// run never reuses its own records. Records that are Unshared or have a Failure are not found under Reuse. If another process
	// recorded the key while work was running, the first record is kept and returned with Replayed set.
	//
	// Unless the key is Loose or Replace, Do also finds a record of other work at the same place: if the run has no record with
	// the Digest, but has records with the Path and Kind that are not Loose, Do returns the newest of these, with Replayed and
	// Differs set, and does not call work.
	//
	// A key of kind "value" stands for work without effects or costs. Its record need not be durable when Do returns, but must be
	// durable before any later step is recorded.
	//
	// If work returns an error, Do returns it and records nothing, because the work is not finished. Work does not panic. The
	// result of work is recorded even if ctx is done by then, since it may have been paid for.
	//
	// Ctx is the context of the step, as the methods of stone.In expect it. The context passed to work must be ctx or a context
	// derived from it: the body can read its values, and cancelling it cancels the body.
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
	// Kept holds the nodes, with their parents, of a leaf that called Keep or Await. It is used only for replay.
	Kept json.RawMessage `json:"kept,omitempty"`
	// Unshared is set if the body has called RunDynamic or Await, which read nodes that no key covers. No other run may reuse
	// such a record.
	Unshared bool `json:"unshared,omitempty"`
	// Sum is a hash of Type, Content, Failure and Kept without times and metas, so that two equal runs have equal sums. A record
	// that does not match its sum has been changed, and is rejected when it is replayed.
	Sum dag.ID `json:"sum"`

	// Node is the node of a leaf in this run, for a recorder that stores nodes. The node's parents lead to all nodes on which it
	// depends. It is nil for decisions, for steps and for replayed records.
	Node *dag.Node `json:"-"`
	// Replayed reports whether the record was made earlier.
	Replayed bool `json:"-"`
	// Path is the path at which the replayed record was made. A step that several goroutines call in turn may be replayed at
	// another path.
	Path string `json:"-"`
	// Differs reports whether the replayed record has the key's place but another Digest.
	Differs bool `json:"-"`
}

// ReusedFrom returns the record for use in another run. Its meta "reused-from" is the id of the run from which the record comes.
func (rec Record) ReusedFrom(run string) Record {
	meta := maps.Clone(rec.Meta)
	if meta == nil {
		meta = map[string]string{}
	}
	meta[terms.From] = run
	rec.Meta = meta
	return rec
}

// Seal returns the correct value of Sum. The content must be canonical JSON.
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
