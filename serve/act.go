package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/respond"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// postAct answers a capability request in the notation of its envelope, JSON or EDN. If the request has the parameter id or an
// Idempotency-Key, a run with this id stores the answer. If the same request is repeated, the server returns the stored answer,
// waits for it, or resumes the run if its server was stopped. A different request with the same id is a conflict. Without the
// parameter, a client that disconnects cancels its request. A client that accepts text/event-stream receives the answer in pieces
// before the envelope.
func (s *Server) postAct(w http.ResponseWriter, r *http.Request, who Principal) error {
	if s.cfg.Applicator == nil {
		return notFound("this server has no capabilities")
	}
	data, err := rawBody(r, "application/json", "application/edn")
	if err != nil {
		return err
	}
	id := r.URL.Query().Get("id")
	if key := r.Header.Get(protocol.IdempotencyKey); key != "" && id == "" {
		id = protocol.KeyedID(key, "act-")
	}
	named := id != ""
	if named && !runName.MatchString(id) {
		return badID(id)
	}
	if id, err = s.counted(r.Context(), who, id); err != nil {
		return err
	}
	request := r.Context()
	if named {
		request = context.WithoutCancel(request) // the client may reconnect to get the answer
	}
	ctx, done, err := s.work(request, who)
	if err != nil {
		return err
	}
	defer done()
	out := &respond.Stream{EDN: !respond.IsJSON(data)}
	cfg := s.actConfig(who)
	if !streams(r) {
		var text bytes.Buffer
		out.W = &text
		resp := s.answerOnce(ctx, r, who, id, data, cfg)
		if err := out.Respond(resp); err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		if out.EDN {
			w.Header().Set("Content-Type", "application/edn")
		}
		status := actStatus(resp.Err)
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
		_, _ = w.Write(text.Bytes()) // an error means that the client is gone
		return nil
	}
	lines := newEventStream(w)
	out.W, cfg.Watch = sentLines{lines}, out
	_ = out.Respond(s.answerOnce(ctx, r, who, id, data, cfg)) // an error means that the client is gone
	return nil
}

// counted returns the name of the run that stores the answer to a request, or "" if no run stores it. Budgets count only the
// costs of stored answers.
func (s *Server) counted(ctx context.Context, who Principal, id string) (string, error) {
	if who.USDADay != nil || len(s.cfg.Budgets) > 0 {
		id = cmp.Or(id, freshID())
	}
	return id, s.solvent(ctx, who.Name, who.USDADay)
}

// actConfig returns the configuration for a caller's capability requests.
func (s *Server) actConfig(who Principal) stone.Config {
	return stone.Config{Grant: grants.Narrow(append([]string{}, s.cfg.Grant...), who.Grant), Policy: s.cfg.Policy, Recorder: journal.Redact()}
}

// sentLines sends each line as a separate event.
type sentLines struct{ *eventStream }

func (s sentLines) Write(line []byte) (int, error) {
	s.write([]byte("data: " + strings.ReplaceAll(strings.TrimSuffix(string(line), "\n"), "\n", "\ndata: ") + "\n\n"))
	s.send()
	return len(line), s.err
}

// rawBody reads a request body that may contain unknown fields.
func rawBody(r *http.Request, types ...string) ([]byte, error) {
	if err := protocol.WantType(r, types...); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r.Body)
	if err != nil && !errors.As(err, new(*http.MaxBytesError)) {
		err = unreadable("the body cannot be read: %v", err)
	}
	return data, err
}

// answerOnce returns the answer to a request. If the same request is already being answered, it waits for that answer until the
// client disconnects.
func (s *Server) answerOnce(ctx context.Context, r *http.Request, who Principal, id string, data []byte, cfg stone.Config) call.Response {
	for {
		resp := s.answerRequest(ctx, who, id, s.cfg.Applicator, data, cfg)
		if !errors.As(resp.Err, new(*journal.HeldError)) || s.closing() || waitFor(r.Context(), after(pollEvery)) != nil {
			return resp
		}
	}
}

// answerRequest answers a request.
func (s *Server) answerRequest(ctx context.Context, who Principal, id string, app *call.Applicator, data []byte, cfg stone.Config) call.Response {
	trace, spec, err := call.ReadRequest(data)
	if err != nil {
		return call.Response{Trace: respond.TraceIn(data), Err: err}
	}
	if err := app.CheckRequest(spec); err != nil {
		return call.Response{Trace: trace, Err: err} // no run keeps this error
	}
	recorded, info := false, journal.RunInfo{Pipeline: "act"}
	if id != "" {
		cfg.RunID = keyOf(who, id)
		clean := redact.From(s.cfg.Base()).Clean
		keep := respond.Keep{
			Journal: s.cfg.Journal, Run: cfg.RunID, Clean: clean, Used: "the run " + id + " is not an answer to this request: choose another id",
			Options: journal.Options{Drain: s.drain, Grace: s.cfg.Grace, Account: clean(who.Name), Labels: map[string]string{"intent": clean(spec.Intent), "request": clean(trace.ID)}},
		}
		maps.Copy(keep.Options.Labels, who.labels())
		info.ID, info.Account, info.Labels = cfg.RunID, keep.Options.Account, keep.Options.Labels
		if keep.Options.Budgets, err = s.drawn(ctx, "act", keep.Options.Labels, keep.Options.Account, who.USDADay); err != nil {
			return call.Response{Trace: trace, Err: err}
		}
		if cfg.Recorder, recorded, err = keep.Recorder(ctx, data); err != nil {
			return call.Response{Trace: trace, Err: err}
		}
	}
	ctx, release := within(ctx, least(s.cfg.Limits, who.Limits, nil))
	defer release()
	if s.cfg.Watch != nil {
		cfg.Watch = event.All(cfg.Watch, s.cfg.Watch(info))
	}
	resp, _ := app.Act(ctx, trace, spec, cfg)
	if recorded && resp.Reply != nil {
		resp.Reply.Usage.Mode = llm.Replay
	}
	return resp
}

// actStatus returns the HTTP status of an answer whose error is err.
func actStatus(err error) int {
	if err == nil {
		return http.StatusOK
	}
	e := call.AsError(err)
	switch {
	case errors.Is(err, journal.ErrUnavailable):
		return http.StatusServiceUnavailable
	case strings.HasPrefix(e.Message, respond.IDUsed), errors.As(err, new(*journal.HeldError)):
		return http.StatusConflict
	case e.Type == reasons.InvalidRequest:
		return http.StatusUnprocessableEntity
	}
	return http.StatusBadGateway
}

// work adds a request without a pipeline to the caller's concurrent runs; the returned function done removes it. The returned
// context has the values of Config.Base. It is canceled when the request ends, or after the server's grace period.
func (s *Server) work(request context.Context, who Principal) (ctx context.Context, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing() {
		return nil, nil, closing()
	}
	if err := s.mayRun(who.Name, who.Runs); err != nil {
		return nil, nil, err
	}
	ctx = limit.Ranked(context.WithoutCancel(s.cfg.Base()), limit.Rank{Tenant: turnOf(source{Owner: who.Name, Published: "act"}, who.Tenant)})
	ctx, cancel := context.WithCancel(s.meters.context(ctx))
	stop := context.AfterFunc(request, cancel)
	key := "act/" + freshID() // no run ID contains a slash
	s.active[key] = &active{owner: who.Name, pipeline: "act", cancel: cancel}
	s.running.Add(1)
	go func() {
		if waitFor(ctx, s.drain) == nil && waitFor(ctx, after(s.cfg.Grace)) == nil {
			cancel()
		}
	}()
	return ctx, func() {
		stop()
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.active, key)
		s.running.Done()
	}, nil
}

// listCaps lists the capabilities.
func (s *Server) listCaps(w http.ResponseWriter, _ *http.Request, _ Principal) error {
	out := api.Capabilities{Capabilities: []api.Capability{}}
	if app := s.cfg.Applicator; app != nil && app.Registry != nil {
		for _, id := range app.Registry.IDs() {
			m, ok := app.Registry.Lookup(id)
			if !ok {
				continue
			}
			text, err := json.Marshal(m)
			if err != nil {
				return err
			}
			var about api.Capability
			if err := json.Unmarshal(text, &about); err != nil {
				return err
			}
			out.Capabilities = append(out.Capabilities, about)
		}
	}
	return reply(w, http.StatusOK, out)
}
