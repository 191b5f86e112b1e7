package mcp

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// A teller tells the client of a call which steps of the run have finished.
type teller struct {
	cancel context.CancelFunc
	done   chan struct{}
	states chan journal.State // in which the run has stopped, after all its steps were told
}

// tell starts one, which says nothing if the client did not ask for progress.
func (s *server) tell(ctx context.Context, c client, req *sdk.CallToolRequest, run string) *teller {
	ctx, cancel := context.WithCancel(ctx)
	t := &teller{cancel, make(chan struct{}), make(chan journal.State, maxStates)}
	token := req.Params.GetProgressToken()
	if token == nil {
		close(t.done)
		return t
	}
	go func() {
		defer close(t.done)
		finished := 0.0
		_ = c.Follow(ctx, run, func(e api.Event) {
			switch {
			case e.Run != nil:
				select {
				case t.states <- e.Run.State:
				default:
				}
			case e.Step != nil && e.Step.Ended && e.Step.Kind != "input":
				finished++
				// A client that cannot be told has gone, which the call finds out.
				_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: finished, Message: e.Step.Path})
			}
		})
	}()
	return t
}

const (
	// lastSteps is how long the steps of a run that has stopped may take to be told.
	lastSteps = time.Second
	// maxStates is how often a run may stop in a call before its last steps are not waited
	// for.
	maxStates = 64
)

// finish returns when all finished steps of a run that has stopped in the state were told.
func (t *teller) finish(state journal.State) {
	defer t.stop()
	late := time.After(lastSteps)
	for {
		select {
		case <-t.done:
			return
		case got := <-t.states:
			if got == state {
				return
			}
		case <-late:
			return
		}
	}
}

// stop returns when nothing more will be told.
func (t *teller) stop() {
	t.cancel()
	<-t.done
}
