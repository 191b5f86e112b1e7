// Package respond answers requests for the command act and the server. A run keeps the answer to each request, and a Stream shows
// the answer as it arrives.
package respond

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// Source is kept with the run of a request instead of a command line.
type Source struct {
	Request string `json:"request-digest"` // of the envelope
}

// Keep configures the run that keeps the answer to a request.
type Keep struct {
	Journal journal.Journal
	Run     string
	Clean   func(string) string // removes secrets, because a digest would help to guess them
	Options journal.Options     // to which Keep adds the source
	Used    string              // the message of a run that answers another request
}

// Recorder returns the recorder of a run that answers the request, or returns the recorded answer without a call, as recorded
// reports. The error is a *call.Error if the run answers another request.
func (k Keep) Recorder(ctx context.Context, data []byte) (r step.Recorder, recorded bool, err error) {
	digest, err := k.digest(data)
	if err != nil {
		return nil, false, err
	}
	if k.Options.Source, err = json.Marshal(Source{digest}); err != nil {
		return nil, false, err
	}
	recorded, err = k.same(ctx, digest)
	return journal.Keep(k.Journal, k.Options), recorded, err
}

// digest is the digest of an envelope, the same in both notations.
func (k Keep) digest(data []byte) (string, error) {
	v, err := edn.ReadEither(data, edn.Limits{Bytes: call.MaxEnvelope})
	if err != nil {
		return "", err
	}
	text, err := edn.ToJSON(v)
	if err == nil {
		text, err = canon.AppendJSON(nil, text)
	}
	sum := sha256.Sum256([]byte(k.Clean(string(text))))
	return hex.EncodeToString(sum[:]), err
}

// same reports whether the run has answered the request. The error means that it answers another request.
func (k Keep) same(ctx context.Context, digest string) (recorded bool, err error) {
	before, err := k.Journal.Find(ctx, k.Run)
	switch {
	case errors.Is(err, journal.ErrNoRun) || errors.As(err, new(*journal.AmbiguousError)) || err == nil && before.ID != k.Run:
		return false, nil // no run has exactly this id
	case err != nil:
		return false, err
	}
	var kept Source
	if json.Unmarshal(before.Source, &kept) == nil && kept.Request == digest {
		return before.State == journal.Done, nil
	}
	return false, &call.Error{Type: reasons.InvalidRequest, Where: "trace", Message: IDUsed + ": " + k.Used}
}

// IDUsed begins the message of an error about a run that answers another request.
const IDUsed = "trace/id-used"

var beginsAsJSON = regexp.MustCompile(`^\s*\{\s*(}|"(\\.|[^"\\])*"\s*:)`)

// IsJSON reports whether a request is JSON, even if it cannot be read.
func IsJSON(data []byte) bool { return beginsAsJSON.Match(data) }

// TraceIn returns a refused request's trace, if it has one.
func TraceIn(data []byte) (t call.Trace) {
	// an unreadable request has no trace
	v, _ := edn.ReadEither(data, edn.Limits{Bytes: call.MaxEnvelope})
	trace, _ := v.Field("trace")
	if id, _ := trace.Field("id"); id.Kind() == edn.KindString {
		t.ID = id.Text()
	}
	turn, _ := trace.Field("turn")
	if n, ok := turn.Int64(); ok && n > 0 {
		t.Turn = int(n)
	}
	return t
}
