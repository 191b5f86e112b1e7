// Package respond answers requests, for the act command and for the server. The answer to each request is recorded in a run, and
// a Stream shows the answer as it arrives.
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

// Source is recorded with the run of a request, in place of a command line.
type Source struct {
	Request string `json:"request-digest"` // digest of the envelope
}

// Keep configures the run in which the answer to a request is recorded.
type Keep struct {
	Journal journal.Journal
	Run     string
	Clean   func(string) string // removes secrets, which could otherwise be guessed with the help of the digest
	Options journal.Options     // options of the run; Keep sets the Source
	Used    string              // message of the error if the run answers another request
}

// Recorder returns a recorder for the run that answers the request. If recorded is true, the answer is already recorded, and the
// recorder returns it without a call. If the run answers another request, the error is a *call.Error.
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

// digest returns the digest of an envelope. It is the same for EDN and JSON.
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

// same reports whether the run answers the request with the given digest. If the run answers another request, same returns an
// error.
func (k Keep) same(ctx context.Context, digest string) (recorded bool, err error) {
	before, err := k.Journal.Find(ctx, k.Run)
	switch {
	case errors.Is(err, journal.ErrNoRun) || errors.As(err, new(*journal.AmbiguousError)) || err == nil && before.ID != k.Run:
		return false, nil // no run has exactly this ID
	case err != nil:
		return false, err
	}
	var kept Source
	if json.Unmarshal(before.Source, &kept) == nil && kept.Request == digest {
		return before.State == journal.Done, nil
	}
	return false, &call.Error{Type: reasons.InvalidRequest, Where: "trace", Message: IDUsed + ": " + k.Used}
}

// IDUsed is the beginning of the error message if a run answers another request.
const IDUsed = "trace/id-used"

var beginsAsJSON = regexp.MustCompile(`^\s*\{\s*(}|"(\\.|[^"\\])*"\s*:)`)

// IsJSON reports whether a request is written in JSON, even if it is invalid.
func IsJSON(data []byte) bool { return beginsAsJSON.Match(data) }

// TraceIn returns the trace in a refused request, or a zero Trace if there is none.
func TraceIn(data []byte) (t call.Trace) {
	// An unreadable request has no trace.
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
