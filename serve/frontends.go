package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/internal/turn/agui"
	"github.com/stonelayer/stone/internal/turn/uistream"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// stopHeader says what closing the connection means: "cancel" cancels the turn. Without the header the turn continues,
// and its client can return to it.
const stopHeader = "Stone-Stop"

// frontendRoutes are the routes for user interfaces of others.
func (s *Server) frontendRoutes() []route {
	return []route{
		{"POST /v1/ui/{name}", Read, s.postUI}, // and Start or Answer, see conversation.follow
		{"GET /v1/ui/{name}", Read, s.listThreads},
		{"GET /v1/ui/{name}/{chat}", Read, s.getHistory},
		{"GET /v1/ui/{name}/{chat}/stream", Read, s.getUI},
		{"POST /v1/agui/{name}", Read, s.postAGUI},
	}
}

// A teller writes what happens in a run for one client.
type teller interface {
	Start() []map[string]any
	Next(parts []turn.Part) []map[string]any
	End(run api.Run, parts []turn.Part) []map[string]any
	Fail(code, text string) []map[string]any
}

// postUI answers a request of the AI SDK: a new message, or the answer to a question.
func (s *Server) postUI(w http.ResponseWriter, r *http.Request, who Principal) error {
	return post(s, r, who, uistream.Read, func(req *turn.Request) *turn.Request { return req }, func(c conversation, req turn.Request, t followed) error {
		return c.tellUI(w, r, t, &uistream.Stream{Message: t.reply, Seen: req.Seen, Notice: req.Notice})
	})
}

// postAGUI answers a request of AG-UI. One without messages joins a conversation.
func (s *Server) postAGUI(w http.ResponseWriter, r *http.Request, who Principal) error {
	return post(s, r, who, agui.Read, func(in *agui.Input) *turn.Request { return &in.Request }, func(c conversation, in agui.Input, t followed) error {
		if in.Join {
			said, _, err := c.history("")
			if err == nil {
				err = in.Connect(said)
			}
			if err != nil {
				return err
			}
		}
		t.old = false // its client sends nothing by itself
		return c.tell(w, r, t, &agui.Stream{Input: in, Name: nameOf(who, t.info.ID)}, "")
	})
}

// post reads a request, starts or continues the turn that it asks for, and tells what happens in its run.
func post[T any](s *Server, r *http.Request, who Principal, read func([]byte) (T, error), of func(*T) *turn.Request, tell func(c conversation, req T, t followed) error) error {
	body, err := rawBody(r, "application/json")
	if err != nil {
		return err
	}
	req, err := read(body)
	if err != nil {
		return invalid("%v", err)
	}
	c, err := s.conversation(r.Context(), who, r.PathValue("name"), of(&req).Chat)
	if err != nil {
		return err
	}
	leave, err := s.hold(who)
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
	out.Run = nameOf(c.who, t.info.ID)
	return c.tell(w, r, t, out, "[DONE]")
}

// getUI sends the reply that is being written again, from its start. Without one, the status is 204. With
// the parameter message, the id of the last message of the client, it also sends a reply to that message that is
// complete.
func (s *Server) getUI(w http.ResponseWriter, r *http.Request, who Principal) error {
	c, err := s.conversation(r.Context(), who, r.PathValue("name"), r.PathValue("chat"))
	if err != nil {
		return err
	}
	info, reply, missed, err := c.replyTo(r.URL.Query().Get("message"))
	seen := turn.Seen{}
	if missed && err == nil && reply != nameOf(who, info.ID) { // the message stands below the replies before it
		seen, err = c.earlierThan(info, reply)
	}
	switch {
	case errors.Is(err, journal.ErrNoRun), err == nil && !goesOn(info.State) && !s.runs(info.ID) && !missed:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case err != nil:
		return err
	}
	leave, err := s.hold(who)
	if err != nil {
		return err
	}
	defer leave()
	return c.tellUI(w, r, followed{info: info}, &uistream.Stream{Message: reply, Seen: seen})
}

// earlierThan returns the parts of a turn's replies before the given one.
func (c conversation) earlierThan(info journal.RunInfo, reply string) (turn.Seen, error) {
	seen := turn.Seen{}
	leave, err := c.read(c.ctx, c.who.Tenant)
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
			id := turn.ID(nameOf(c.who, info.ID), e.Parts[i].ID)
			seen.Add(id)
			seen.AddResult(id)
		}
	}
	return seen, err
}

// replyTo returns the newest turn with the id of its reply, and reports whether that is the reply to a message.
func (c conversation) replyTo(message string) (info journal.RunInfo, reply string, missed bool, err error) {
	leave, err := c.read(c.ctx, c.who.Tenant)
	if err != nil {
		return info, "", false, err
	}
	defer leave()
	info, err = c.newest(nil)
	reply = nameOf(c.who, info.ID)
	if err != nil || message == "" || info.Labels[messageLabel] == message {
		return info, reply, message != "", err
	}
	for q, err := range journal.EachQuestion(c.ctx, c.cfg.Journal, journal.QuestionQuery{Run: info.ID}) {
		if err != nil {
			return info, reply, false, err
		}
		if saidIn(q, message) {
			return info, turn.ID(reply, message), true, nil
		}
	}
	return info, reply, false, nil
}

// tell sends what happens in a run until it stops, the client has gone, or the server ends. A tail is sent after the
// last event. Its caller has counted the stream. A request that brings nothing new and gets nothing new is refused;
// otherwise a page that sends complete messages by itself would never stop.
func (c conversation) tell(w http.ResponseWriter, r *http.Request, of followed, t teller, tail string) error {
	out := newEventStream(w)
	p := newPulse(c.Server, r, c.who)
	defer p.stop()
	start := t.Start()
	send := func(events []map[string]any) {
		for _, e := range append(start, events...) {
			text, err := json.Marshal(e)
			if err != nil { // the recorded input of a call is no JSON
				text, _ = json.Marshal(t.Fail("internal", "the stream cannot be written")[0])
			}
			out.write(append(append([]byte("data: "), text...), "\n\n"...))
		}
		start = nil
		out.send()
	}
	more := func(parts []turn.Part) {
		if events := t.Next(parts); len(events) > 0 || !of.old {
			send(events)
		}
	}
	wait := func(news <-chan struct{}) bool {
		send(nil)
		return p.wait(out, news, nil) && out.err == nil
	}
	ended, parts, err := c.watch(of.info, wait, more)
	switch {
	case errors.Is(err, errLeft) && r.Context().Err() != nil:
		if r.Header.Get(stopHeader) == "cancel" && c.who.may(Start) {
			_ = c.stop(context.WithoutCancel(c.ctx), of.info) // or it has just ended
		}
	case errors.Is(err, errLeft) && c.closing():
		send(t.Fail(api.Unavailable, "the server is closing: the turn continues, ask for its stream again"))
	case errors.Is(err, errLeft): // the client comes back
	case err != nil:
		p := c.problemOf(r, err)
		send(t.Fail(p.Type, p.Detail))
	default:
		more(parts)
		if start != nil && (ended.State == journal.Waiting || ended.State == journal.Done) {
			return conflict("the request brings nothing new, and the turn, which is %s, has nothing new either", ended.State)
		}
		send(t.End(ended, parts))
		if tail != "" {
			out.write([]byte("data: " + tail + "\n\n"))
			out.send()
		}
	}
	return nil
}

// errLeft is the error of watch when its wait has ended it.
var errLeft = errors.New("nobody waits")

// watch calls tell with the parts of a run so far, whenever there are more, until the run stops. It then returns the
// run with all its parts. Wait waits for news, and returns false to end it.
func (c conversation) watch(info journal.RunInfo, wait func(news <-chan struct{}) bool, tell func([]turn.Part)) (ended api.Run, parts []turn.Part, err error) {
	var log *turn.Log
	var live []turn.Part // that were told last, before the record
	for {
		if info.ID == "" { // nothing was said yet
			return api.Run{State: journal.Done}, nil, nil
		}
		if log == nil {
			log = watcherOf[*turn.Log](c.Server, info.ID)
		}
		if log == nil {
			if info, err = c.exactly(c.ctx, info.ID); err == nil && (goesOn(info.State) || c.runs(info.ID)) {
				if c.closing() || !wait(after(pollEvery)) {
					return ended, nil, errLeft
				}
				continue
			}
			if err != nil {
				return ended, nil, err
			}
			return c.ended(info, live)
		}
		parts, news := log.Now()
		live = parts
		if tell(parts); news == nil {
			log = nil // all of it was told, before its record is
		} else if !wait(news) {
			return ended, nil, errLeft
		}
	}
}

// ended returns a run that has stopped, with all its parts. See ending for live.
func (c conversation) ended(info journal.RunInfo, live []turn.Part) (api.Run, []turn.Part, error) {
	leave, err := c.read(c.ctx, c.who.Tenant)
	if err != nil {
		return api.Run{}, nil, err
	}
	defer leave()
	log, _, err := c.parts(c.ctx, c.p, info)
	if err != nil {
		return api.Run{}, nil, err
	}
	parts, _ := log.Now()
	return c.ending(info, parts, live)
}

// listen is await for a client that is told what the run says, see turn.Listen.
func (s *Server) listen(ctx context.Context, who Principal, info journal.RunInfo, tell func([]turn.Part)) (api.Run, error) {
	p := s.pipelines[info.Pipeline]
	if p == nil {
		return s.await(ctx, who, info)
	}
	c := conversation{Server: s, ctx: context.WithoutCancel(ctx), who: who, p: p}
	ended, parts, err := c.watch(info, func(news <-chan struct{}) bool { return waitFor(ctx, news) == nil }, tell)
	switch {
	case errors.Is(err, errLeft):
		if info, err = c.exactly(c.ctx, info.ID); err == nil {
			if ended = run(who, info); info.State == journal.Done { // meanwhile
				ended.Result, err = s.result(c.ctx, info)
			}
		}
	case err == nil:
		tell(parts)
	}
	return ended, err
}
