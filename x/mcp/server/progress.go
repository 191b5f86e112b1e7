package server

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// A teller tells a call's client which steps of the run have finished.
type teller struct {
	cancel context.CancelFunc
	done   chan struct{}
	states chan journal.State // states in which the run stopped; each follows after all earlier steps were sent
}

// tell starts a teller for a call. If the client has not requested progress, the teller sends nothing.
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
				// If this fails, the client is gone, which the call itself will notice.
				_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: finished, Message: e.Step.Path})
			}
		})
	}()
	return t
}

const (
	// lastSteps is the maximum time for sending the last steps of a stopped run.
	lastSteps = time.Second
	// maxStates is how many times during a call, at most, finish waits for the last steps of a stopped run.
	maxStates = 64
)

// finish waits until all steps of a run that stopped in the given state have been sent, at most for lastSteps.
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

// stop stops the teller, and returns when nothing more will be sent.
func (t *teller) stop() {
	t.cancel()
	<-t.done
}
