package openai

import (
	"context"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// A Turn is the run of a request that contains the whole conversation. Clients of Chat Completions and of Anthropic's Messages
// send such requests.
type Turn struct {
	Model Model
	Run   api.Run
	Said  string // text that Speak has passed on so far

	backend Backend
	request *http.Request
}

// Ask starts the run of a request. The run's id begins with kind.
func Ask(w http.ResponseWriter, r *http.Request, b Backend, kind, model string, req *llm.Request, s Start) (*Turn, error) {
	s.ID, s.Interactive = runID(r, kind), true
	m, run, err := start(r, b, model, req, nil, s, nil)
	if err != nil {
		return nil, err
	}
	w.Header().Set("X-Request-Id", run.ID)
	return &Turn{Model: m, Run: run, backend: b, request: r}, nil
}

// Live reports whether Speak passes on the text of the answer while the model writes it.
func (t *Turn) Live() bool { return t.backend.Live(t.Run.ID) != nil }

// Speak passes on the text of a live answer, piece by piece.
func (t *Turn) Speak(beat func(), say func(more string)) {
	speak(t.request.Context(), t.backend.Live(t.Run.ID), beat, func(text string) {
		if more := text[len(t.Said):]; more != "" {
			say(more)
		}
		t.Said = text
	})
}

// Answer waits for the answer, which begins with the text in Said, and returns it. If the error is an *Error, send it to the
// client. Any other error means that the client has disconnected; if the client cannot reconnect, Answer cancels the run.
func (t *Turn) Answer(beat func()) (answer *llm.Reply, err error) {
	if t.Run, err = wait(t.request.Context(), t.backend, t.Run.ID, !named(t.request), beat); err != nil {
		return nil, err
	}
	if t.Run.State != journal.Done {
		return nil, ofRun(t.Run)
	}
	if answer, err = t.Model.Answer(t.request.Context(), t.Run); err != nil {
		return nil, unread(err)
	}
	if !strings.HasPrefix(answer.Text, t.Said) {
		return nil, lost(string(Retracted), elsewhere)
	}
	return answer, nil
}

// answerTo returns the answer of an earlier run with the given id.
func answerTo(ctx context.Context, b Backend, id string) (answer *llm.Reply, err error) {
	var m Model
	var run api.Run
	if strings.HasPrefix(id, "resp_") {
		_, m, run, err = existing(ctx, b, id)
	} else {
		now, stop := context.WithCancel(ctx)
		stop()
		if run, err = b.Wait(now, id); err == nil {
			m, err = Find(b, prefix+run.Pipeline)
		}
	}
	if err != nil || run.State != journal.Done {
		return nil, err
	}
	return m.Answer(ctx, run)
}
