package step

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
)

// A Key identifies a step. It is known before the work.
type Key struct {
	RunID string // the run
	Path  string // the address in the tree; with Kind unique within the run
	Kind  string // "leaf", "decision" or "step"
	Name  string // of the ashlar, or of the step
	// Digest identifies the step within its run. It covers Kind, Path, the
	// fingerprint of the ashlar, the ids of the nodes that the ashlar and its
	// Children read, and what the leaf renders of them (see Detail). For a Step
	// it covers the body to which the step belongs, its name and its input.
	Digest dag.ID
	// Reuse identifies the step across runs: the fingerprint of the ashlar, the
	// contents of what it and its Children read, what it renders of them, and
	// which round, lane, visit or attempt it is. It is zero unless the ashlar is
	// Reusable.
	Reuse dag.ID
}

// A Recorder remembers what a run has done. Every leaf, every decision and every
// Step goes through it. Its method is called from several goroutines at once,
// within one run never at the same time for one key.
//
// If the recorder itself fails, the run stops: running steps finish, no new ones
// start and no Rescue runs. The failure has kind "recorder-failed", or the kind of the
// *stone.Failure returned. A process that is about to end stops its runs in this way:
// its Recorder refuses whatever is not recorded yet.
//
// A Recorder can have two more methods:
//
//   - Clean(string) string removes secrets from the failures that the run makes
//     itself, such as that of a Scoped body. What Do is given it can clean there.
//   - WrapRun(ctx context.Context, p stone.Ashlar, cfg stone.Config, run
//     func(context.Context, stone.Config) (stone.Result, error)) (stone.Result, error)
//     keeps runs as a whole. stone.Run calls it in place of the run itself and returns
//     what it returns. It calls run at most once, with cfg or a Config made from it, for
//     example with a RunID, a recorded Input, a Frontend around that of cfg, or another
//     Recorder, which is then used as it is.
type Recorder interface {
	// Do returns what is recorded under the key, with Replayed set. If nothing
	// is, it calls work once, records what that returns, and returns it.
	//
	// Two records are under one key if they have the same RunID and Digest, or
	// different RunIDs and the same Reuse that is not zero: a run never reuses
	// from itself. Under Reuse no record with a Failure is found, and none that
	// is Unshared. If somebody else has recorded the key while work ran, the
	// record that came first stands, and is returned with Replayed set.
	//
	// An error of work is returned, and nothing is recorded: the work has not
	// come to its end. Work does not panic. What it returns is recorded also
	// if ctx is done by then, since it may have been paid for.
	//
	// Ctx is that of the step, as Event and Path understand it. The context
	// that work is given must be ctx or made from it: its values reach the
	// body, and cancelling it cancels the body.
	Do(ctx context.Context, key Key, work func(context.Context) (Record, error)) (Record, error)
}

// A Record is what a step did. Its JSON is all that is needed to replay it.
type Record struct {
	// Type, Content, Meta and Time are those of the node of a leaf. A decision
	// or a step has its value as Content.
	Type    string            `json:"type,omitempty"`
	Content json.RawMessage   `json:"content,omitempty"`
	Meta    map[string]string `json:"meta,omitempty"`
	Time    time.Time         `json:"time"`
	// Failure is set, in place of Type and Content, if the step failed. That is
	// recorded too, or a resumed run could take another way.
	Failure *dag.FailureContent `json:"failure,omitempty"`
	// Kept is set if a leaf has called Keep or Await: the nodes that it keeps
	// beside its own, and where they stand. It is for replaying alone.
	Kept json.RawMessage `json:"kept,omitempty"`
	// Unshared is set if the body has called RunDynamic or Await, which read what
	// no key covers: no other run may reuse the record.
	Unshared bool `json:"unshared,omitempty"`
	// Sum stands for Type, Content, Failure and Kept, but for times and metas, so
	// that it is the same in two runs that did the same. A record that does not fit
	// its sum was changed, and is refused when it is replayed.
	Sum dag.ID `json:"sum"`

	// Node is the node of a leaf as it stands in this run, for a recorder that
	// keeps nodes: whatever it was made from is found through its parents. It
	// is nil in everything else and in what is replayed.
	Node *dag.Node `json:"-"`
	// Replayed reports that the record is from earlier.
	Replayed bool `json:"-"`
}

// Seal returns what Sum has to be. The content must be canonical JSON.
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

// timeless returns what stands for Kept in the sum: all of it but times and metas,
// which two runs that did the same do not share.
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
