package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/x/ui/internal/agui"
	"github.com/stonelayer/stone/x/ui/internal/uistream"
)

// stopHeader is the request header that determines what happens when the client closes the connection: "cancel" cancels the turn.
// Without the header, the turn continues, and the client can come back to it.
const stopHeader = "Stone-Stop"

// Part serves the AI SDK's UI message stream and AG-UI. It can be a part of a program, or an element of serve.Config.Protocols.
var Part = protocol.Protocol{Routes: []protocol.Route{
	{Pattern: "GET /v1/threads", Role: protocol.Read, Serve: listThreads},
	{Pattern: "POST /v1/ui/{name}", Role: protocol.Read, Serve: postUI}, // further roles may be required; see conversation.follow
	{Pattern: "GET /v1/ui/{name}", Role: protocol.Read, Serve: listThreads},
	{Pattern: "GET /v1/ui/{name}/{chat}", Role: protocol.Read, Serve: getHistory},
	{Pattern: "GET /v1/ui/{name}/{chat}/stream", Role: protocol.Read, Waits: func(*http.Request) bool { return true }, Serve: getUI},
	{Pattern: "POST /v1/agui/{name}", Role: protocol.Read, Serve: postAGUI},
}}

// A teller writes the events of a run for one client.
type teller interface {
	Start() []map[string]any
	Next(parts []turn.Part) []map[string]any
	End(run api.Run, parts []turn.Part) []map[string]any
	Fail(code, text string) []map[string]any
}

// postUI handles a request of the AI SDK: a new message, or the answer to a question.
func postUI(w http.ResponseWriter, r *http.Request, by protocol.Caller) error {
	return post(r, by, uistream.Read, func(req *turn.Request) *turn.Request { return req }, func(c conversation, req turn.Request, t followed) error {
		return c.tellUI(w, r, t, &uistream.Stream{Message: t.reply, Seen: req.Seen, Notice: req.Notice})
	})
}

// postAGUI handles a request of AG-UI. A request without messages joins a conversation.
func postAGUI(w http.ResponseWriter, r *http.Request, by protocol.Caller) error {
	return post(r, by, agui.Read, func(in *agui.Input) *turn.Request { return &in.Request }, func(c conversation, in agui.Input, t followed) error {
		if in.Join {
			said, _, err := c.history("")
			if err == nil {
				err = in.Connect(said)
			}
			if err != nil {
				return err
			}
		}
		t.old = false // AG-UI clients send nothing without a person's action
		return c.tell(w, r, t, &agui.Stream{Input: in, Name: t.info.ID}, "")
	})
}

// post reads a request, starts or continues the requested turn, and streams the events of its run.
func post[T any](r *http.Request, by protocol.Caller, read func([]byte) (T, error), of func(*T) *turn.Request, tell func(c conversation, req T, t followed) error) error {
	body, err := bodyOf(r)
	if err != nil {
		return err
	}
	req, err := read(body)
	if err != nil {
		return invalid("%v", err)
	}
	c, err := conversationOf(r.Context(), by, r.PathValue("name"), of(&req).Chat)
	if err != nil {
		return err
	}
	leave, err := by.Hold()
	if err != nil {
		return err
	}
	defer leave()
	t, err := c.follow(of(&req))
	if err != nil {
		return err
	}
	return tell(c, req, t)
}

func (c conversation) tellUI(w http.ResponseWriter, r *http.Request, t followed, out *uistream.Stream) error {
	w.Header().Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	out.Run = t.info.ID
	return c.tell(w, r, t, out, "[DONE]")
}

// getUI sends the reply that is being written, again from its start. If there is none, the status is 204. If the parameter
// message contains the id of the client's last message, a complete reply to that message is sent, too.
func getUI(w http.ResponseWriter, r *http.Request, by protocol.Caller) error {
	c, err := conversationOf(r.Context(), by, r.PathValue("name"), r.PathValue("chat"))
	if err != nil {
		return err
	}
	info, reply, missed, err := c.replyTo(r.URL.Query().Get("message"))
	seen := turn.Seen{}
	if missed && err == nil && reply != info.ID { // the message is shown below the replies before it
		seen, err = c.earlierThan(info, reply)
	}
	switch {
	case errors.Is(err, journal.ErrNoRun), err == nil && !c.Going(info) && !missed:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case err != nil:
		return err
	}
	leave, err := by.Hold()
	if err != nil {
		return err
	}
	defer leave()
	return c.tellUI(w, r, followed{info: info}, &uistream.Stream{Message: reply, Seen: seen})
}

// earlierThan returns the parts of a turn that belong to earlier replies than the given reply.
func (c conversation) earlierThan(info journal.RunInfo, reply string) (turn.Seen, error) {
	seen := turn.Seen{}
	leave, err := c.Place(c.ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	said, err := c.exchanges(info)
	for _, e := range said {
		if e.Reply == reply {
			break
		}
		for i := range e.Parts {
			id := turn.ID(info.ID, e.Parts[i].ID)
			seen.Add(id)
			seen.AddResult(id)
		}
	}
	return seen, err
}

// replyTo returns the newest turn and the id of its reply, and reports whether this reply answers the given message.
func (c conversation) replyTo(message string) (info journal.RunInfo, reply string, missed bool, err error) {
	leave, err := c.Place(c.ctx)
	if err != nil {
		return info, "", false, err
	}
	defer leave()
	info, err = c.newest(nil)
	reply = info.ID
	if err != nil || message == "" || info.Labels[turn.MessageLabel] == message {
		return info, reply, message != "", err
	}
	for q, err := range c.Journal().EachQuestion(c.ctx, journal.QuestionQuery{Run: info.ID}) {
		if err != nil {
			return info, reply, false, err
		}
		if saidIn(q, message) {
			return info, turn.ID(reply, message), true, nil
		}
	}
	return info, reply, false, nil
}

// tell sends the events of a run until the run stops, the client is gone, or the server shuts down. If there is a tail, it is
// sent after the last event. The caller of tell has counted the stream. A request is refused if it contains nothing new and there
// is nothing new to send: otherwise a page that always considers its messages complete would send them again and again.
func (c conversation) tell(w http.ResponseWriter, r *http.Request, of followed, t teller, tail string) error {
	out := c.Stream(w, r)
	defer out.Close()
	start := t.Start()
	send := func(events []map[string]any) {
		var frames [][]byte
		for _, e := range append(start, events...) {
			text, err := json.Marshal(e)
			if err != nil { // the recorded input of a call is not JSON
				text, _ = json.Marshal(t.Fail("internal", "the stream cannot be written")[0])
			}
			frames = append(frames, append(append([]byte("data: "), text...), "\n\n"...))
		}
		start = nil
		out.Send(frames...)
	}
	more := func(parts []turn.Part) {
		if events := t.Next(parts); len(events) > 0 || !of.old {
			send(events)
		}
	}
	wait := func(news <-chan struct{}) bool {
		send(nil)
		return out.Wait(news)
	}
	ended, parts, err := api.Run{State: journal.Done}, []turn.Part(nil), error(nil)
	if of.info.ID != "" { // otherwise the conversation has no turn yet
		ended, parts, err = c.Watch(c.ctx, of.info, wait, more)
	}
	switch {
	case errors.Is(err, protocol.ErrLeft) && r.Context().Err() != nil:
		if r.Header.Get(stopHeader) == "cancel" && c.Needs(protocol.Start) == nil {
			_ = c.Cancel(context.WithoutCancel(c.ctx), of.info.ID) // an error means that the run has just ended
		}
	case errors.Is(err, protocol.ErrLeft) && c.Closing() != nil:
		send(t.Fail(problems.Unavailable, "the server is closing: the turn continues, ask for its stream again"))
	case errors.Is(err, protocol.ErrLeft): // the client will come back
	case err != nil:
		p := c.Problem(r, err)
		send(t.Fail(p.Type, p.Detail))
	default:
		more(parts)
		if start != nil && (ended.State == journal.Waiting || ended.State == journal.Done) {
			return conflict("the request brings nothing new, and the turn, which is %s, has nothing new either", ended.State)
		}
		send(t.End(ended, parts))
		if tail != "" {
			out.Send([]byte("data: " + tail + "\n\n"))
		}
	}
	return nil
}

// bodyOf reads the body of a request.
func bodyOf(r *http.Request) ([]byte, error) {
	if err := protocol.WantType(r, "application/json"); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r.Body)
	if err != nil && !errors.As(err, new(*http.MaxBytesError)) {
		err = unreadable("the body cannot be read: %v", err)
	}
	return data, err
}

// reply writes a value as JSON.
func reply(w http.ResponseWriter, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // an error means that the client is gone
	return nil
}

func problem(code string, status int, format string, args ...any) *api.Problem {
	return &api.Problem{Type: code, Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) error {
	return problem(problems.Invalid, http.StatusUnprocessableEntity, format, args...)
}

func unreadable(format string, args ...any) error {
	return problem(problems.Invalid, http.StatusBadRequest, format, args...)
}

func conflict(format string, args ...any) error {
	return problem(problems.Conflict, http.StatusConflict, format, args...)
}

func notFound(format string, args ...any) error {
	return problem(problems.NotFound, http.StatusNotFound, format, args...)
}

func isConflict(err error) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Type == problems.Conflict
}

// ofTalk returns the problem for a message that the pipeline cannot handle.
func ofTalk(err error) error {
	if e, ok := errors.AsType[*talk.Error](err); ok {
		status := http.StatusBadRequest
		if e.Paid {
			status = http.StatusUnprocessableEntity
		}
		return problem(problems.Invalid, status, "%s", e.Message)
	}
	return err
}

// over reports whether a run in this state has stopped and will not continue by itself.
func over(state journal.State) bool {
	return state == journal.Done || state == journal.Failed || state == journal.Canceled
}
