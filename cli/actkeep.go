package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/journal"
)

// answered is recorded with the run of a request, in place of a command line.
type answered struct {
	Request string `json:"request-digest"` // of the envelope
}

// requestRun is the id of the run that answers a request: that of its trace, with the
// turn if it has one, or a digest if that is no name for a run.
func requestRun(t call.Trace) string {
	id := t.ID
	if t.Turn > 0 {
		id += "-turn-" + strconv.Itoa(t.Turn)
	}
	if runName.MatchString(id) && id != youngest {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "request-" + hex.EncodeToString(sum[:8])
}

// digestOf is the digest of an envelope, the same in both notations. Secrets are taken
// out before: a digest of one would help to guess it.
func (a *app) digestOf(data []byte) (string, error) {
	v, err := edn.ReadEither(data, edn.Limits{Bytes: call.MaxEnvelope})
	if err != nil {
		return "", err
	}
	text, err := edn.ToJSON(v)
	if err == nil {
		text, err = canon.AppendJSON(nil, text)
	}
	sum := sha256.Sum256([]byte(a.secrets.Clean(string(text))))
	return hex.EncodeToString(sum[:]), err
}

// keepRequest makes cfg record the run of a request. If the store has an answer to the
// same request, the run takes it from there and makes no call, which recorded reports. The error is a *call.Error
// if the run answers another request.
func (a *app) keepRequest(ctx context.Context, k keepFlags, trace call.Trace, intent string, data []byte, cfg *stone.Config) (s *store, recorded bool, err error) {
	digest, err := a.digestOf(data)
	if err != nil {
		return nil, false, err
	}
	if s, err = a.newStore(ctx, k.db, ""); err != nil {
		return nil, false, err
	}
	cfg.RunID = cmp.Or(k.id, requestRun(call.Trace{ID: a.secrets.Clean(trace.ID), Turn: trace.Turn}))
	source, err := json.Marshal(answered{digest})
	if err == nil {
		recorded, err = sameRequest(ctx, s, cfg.RunID, digest)
	}
	if err != nil {
		if closed := s.Close(); closed != nil {
			err = errors.Join(err, closed)
		}
		return nil, false, err
	}
	cfg.Recorder = journal.Keep(s.Store, journal.Options{Source: source, Labels: map[string]string{"intent": a.secrets.Clean(intent), "request": a.secrets.Clean(trace.ID)}})
	return s, recorded, nil
}

// sameRequest reports whether the run with the id has answered the request. The error is
// that the run answers another one.
func sameRequest(ctx context.Context, s *store, id, digest string) (recorded bool, err error) {
	before, err := s.Find(ctx, id)
	switch {
	case errors.Is(err, journal.ErrNoRun) || errors.As(err, new(*journal.AmbiguousError)) || err == nil && before.ID != id:
		return false, nil // no run has exactly this id
	case err != nil:
		return false, err
	}
	var kept answered
	if json.Unmarshal(before.Source, &kept) == nil && kept.Request == digest {
		return before.State == journal.Done, nil
	}
	return false, &call.Error{Type: call.InvalidRequest, Where: "trace", Message: fmt.Sprintf("trace/id-used: run %s in %s is no answer to this request: give the request another id, or name its run with --id", id, s.file)}
}
