package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/respond"
	"github.com/stonelayer/stone/journal"
)

// requestRun is the id of the run that answers a request: the id of its trace, with the
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

// keepRequest makes cfg record the run of a request. If the store has an answer to the
// same request, the run takes it from there and makes no call, which recorded reports. The error is a *call.Error
// if the run answers another request.
func (a *app) keepRequest(ctx context.Context, k keepFlags, trace call.Trace, intent string, data []byte, cfg *stone.Config) (s *store, recorded bool, err error) {
	if s, err = a.newStore(ctx, k.db, ""); err != nil {
		return nil, false, err
	}
	cfg.RunID = cmp.Or(k.id, requestRun(call.Trace{ID: a.secrets.Clean(trace.ID), Turn: trace.Turn}))
	keep := respond.Keep{
		Journal: s.Store, Run: cfg.RunID, Clean: a.secrets.Clean,
		Options: journal.Options{Labels: map[string]string{"intent": a.secrets.Clean(intent), "request": a.secrets.Clean(trace.ID)}},
		Used:    fmt.Sprintf("run %s in %s is not an answer to this request: give the request another id, or name its run with --id", cfg.RunID, s.file),
	}
	if conf := a.calls.conf; conf != nil {
		keep.Options.Budgets = budget.Drawn(conf.Budgets, "act", keep.Options.Labels)
	}
	r, recorded, err := keep.Recorder(ctx, data)
	if err != nil {
		if closed := s.Close(); closed != nil {
			err = errors.Join(err, closed)
		}
		return nil, false, err
	}
	cfg.Recorder = r
	return s, recorded, nil
}

// streamHelp is the help of the flag --stream.
const streamHelp = "print pieces of answers as they arrive, one per line; a line \"retracted\" voids the earlier pieces of its path and source"

// partialHelp is the help of the flag --partial.
const partialHelp = "with --stream, also print what has arrived of answers in JSON, closed to a value, in lines \"partial\""

var errPartial = errors.New("--partial needs --stream, whose lines it adds to")
