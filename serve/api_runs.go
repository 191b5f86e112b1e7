package serve

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/filter"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// oneRun is the cheapest query of a journal, used to check that it can be read.
var oneRun = journal.Query{Limit: 1}

// runName matches the names that a caller may give a run.
var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func (s *Server) putRun(w http.ResponseWriter, r *http.Request, who Principal) error {
	id := r.PathValue("id")
	if !runName.MatchString(id) {
		return badID(id)
	}
	return s.startRun(w, r, who, id)
}

func badID(id string) *api.Problem {
	if n := len(id); n > 100 {
		return unreadable("the id has %d bytes: want at most 100", n)
	}
	return invalid("the id %q: want up to 100 of a-z, A-Z, 0-9, \".\", \"-\" and \"_\", a letter or digit first", id)
}

func (s *Server) postRun(w http.ResponseWriter, r *http.Request, who Principal) error {
	id := freshID()
	if key := r.Header.Get(protocol.IdempotencyKey); key != "" {
		id = protocol.KeyedID(key, "run-")
	}
	return s.startRun(w, r, who, id)
}

func (s *Server) startRun(w http.ResponseWriter, r *http.Request, who Principal, id string) error {
	var req api.Start
	if err := readBody(r, &req); err != nil {
		return err
	}
	info, created, err := s.start(r.Context(), who, id, req)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/runs/"+url.PathEscape(id))
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return reply(w, status, run(who, info))
}

// run returns the description of a run that is sent to a caller.
func run(who Principal, info journal.RunInfo) api.Run {
	return api.Run{
		ID: nameOf(who, info.ID), Pipeline: info.Pipeline, State: info.State, Started: info.Started, Ended: info.Ended,
		Labels: shownLabels(info), Attempt: info.Attempt, Steps: info.Steps, Usage: info.Usage, Failure: view.Head{RunInfo: info}.Why(), Lanes: info.Lanes, Notices: info.Notices,
	}
}

// find returns the run whose id is in the path of a request, or an error if the caller may not see it.
func (s *Server) find(r *http.Request, who Principal) (journal.RunInfo, error) {
	return s.owned(r.Context(), who, r.PathValue("id"))
}

// owned returns the run with the caller's id.
func (s *Server) owned(ctx context.Context, who Principal, id string) (journal.RunInfo, error) {
	if !view.IsText(id) {
		return journal.RunInfo{}, journal.ErrNoRun
	}
	info, err := s.exactly(ctx, keyOf(who, id))
	if err == nil && !who.sees(info) {
		return journal.RunInfo{}, journal.ErrNoRun
	}
	return info, err
}

// selected parses the query parameters of a request for a list of the caller's runs.
func (s *Server) selected(ctx context.Context, who Principal, values url.Values) (q journal.Query, err error) {
	if q, err = filter.Query(values); err != nil {
		return q, unreadable("%v", err)
	}
	maps.Copy(q.Labels, who.labels())
	if q.Before != "" {
		last, err := s.owned(ctx, who, q.Before)
		if err != nil {
			return q, err
		}
		q.Before = last.ID
	}
	return q, nil
}

// listRuns lists the runs that match the query parameters: state, pipeline, text, min-usd, since, until, ended-since, before,
// limit, and label.NAME.
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request, who Principal) error {
	values := r.URL.Query()
	if streams(r) {
		values.Del("after") // see sendList
	}
	q, err := s.selected(r.Context(), who, values)
	if err != nil {
		return err
	}
	return s.sendList(w, r, who, list{"runs?" + values.Encode(), func(ctx context.Context) (any, error) {
		runs, more, err := pageOf(ctx, s.cfg.Journal, q)
		if err != nil {
			return nil, err
		}
		page := api.Runs{Runs: make([]api.Run, 0, len(runs))}
		for _, info := range runs {
			page.Runs = append(page.Runs, run(who, info))
		}
		if more {
			page.Next = page.Runs[len(runs)-1].ID
		}
		return page, nil
	}})
}

const (
	maxPage   = filter.MaxPage
	pageBytes = 4 << 20 // approximate maximum size of the runs on a page
	somePage  = 16      // number of runs read at a time while their size is unknown
)

// pageOf returns the runs of a page and reports whether there may be more. A page ends when it has reached its limit or its
// maximum size, so only a few large runs are in memory at the same time.
func pageOf(ctx context.Context, a journal.Journal, q journal.Query) (runs []journal.RunInfo, more bool, err error) {
	limit, before, some, size := q.Limit, q.Before, somePage, 0
	for {
		q.Limit, q.Before = min(some, limit-len(runs)), before
		if len(runs) > 0 {
			q.Before = runs[len(runs)-1].ID
		}
		next, err := a.Runs(ctx, q)
		if errors.Is(err, journal.ErrNoRun) && len(runs) > 0 { // the first run of the next page was removed meanwhile
			runs = runs[:len(runs)-1]
			continue
		}
		if err != nil {
			return nil, false, err
		}
		for i, info := range next {
			if size += sizeOf(info); size > pageBytes && len(runs) > 0 {
				return runs, true, nil
			}
			runs = append(runs, next[i])
		}
		if len(next) < q.Limit || len(runs) == limit {
			return runs, len(runs) == limit, nil
		}
		some = min(2*some, max(somePage, pageBytes/(size/len(runs)+1)))
	}
}

// sizeOf returns the approximate size of a run in the journal, in bytes.
func sizeOf(r journal.RunInfo) int {
	n := 256 + len(r.ID) + len(r.Pipeline) + len(r.Source) + len(r.Revision) + len(dag.ID{})*len(r.Heads)
	for name, value := range r.Labels {
		n += len(name) + len(value)
	}
	if r.Failure != nil {
		n += len(r.Failure.Kind) + len(r.Failure.Path) + len(r.Failure.Reason)
	}
	for _, path := range r.Retry {
		n += len(path)
	}
	for _, notice := range r.Notices {
		n += len(notice.Path) + len(notice.Text)
	}
	return n
}

func (s *Server) getRun(w http.ResponseWriter, r *http.Request, who Principal) error {
	info, err := s.find(r, who)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, run(who, info))
}

// maxWait is the maximum value of the parameter wait.
const maxWait = time.Minute

// getResult replies with a run and its result. If the parameter wait is set, it waits up to this time for the run to stop. If the
// run has not stopped by then, the status is 202 and there is no result.
func (s *Server) getResult(w http.ResponseWriter, r *http.Request, who Principal) error {
	text := cmp.Or(r.URL.Query().Get("wait"), "0")
	wait, err := time.ParseDuration(text)
	if err != nil { // a number of seconds
		if wait, err = time.ParseDuration(text + "s"); err != nil {
			return unreadable("the parameter wait is %q: want a duration, such as 30s", text)
		}
	}
	info, err := s.find(r, who)
	if err != nil {
		return err
	}
	if wait > 0 {
		leave, err := s.hold(who)
		if err != nil {
			return err
		}
		defer leave()
	}
	ctx, cancel := context.WithTimeout(r.Context(), min(max(wait, 0), maxWait))
	defer cancel()
	var out api.Run
	if tell := turn.Listener(ctx); tell != nil {
		out, err = s.listen(ctx, who, info, tell)
	} else {
		out, err = s.await(ctx, who, info)
	}
	if err != nil {
		return err
	}
	if out.State == journal.Refused {
		p := refused(out.Failure.Reason)
		p.Run = &out
		return p
	}
	out.Result = bareOf(out.Result)
	status := http.StatusOK
	if out.Result == nil && !out.Over() {
		status = http.StatusAccepted
	}
	return reply(w, status, out)
}

// await waits until the run has stopped or ctx is done, and returns the run with its result, if any.
func (s *Server) await(ctx context.Context, who Principal, info journal.RunInfo) (out api.Run, err error) {
	for (goesOn(info.State) || s.runs(info.ID)) && ctx.Err() == nil {
		if info, err = s.settled(ctx, info); err != nil {
			return out, err
		}
	}
	if out = run(who, info); info.State != journal.Done {
		return out, nil
	}
	ctx = context.WithoutCancel(ctx)
	leave, err := s.read(ctx, who.Tenant)
	if err != nil {
		return out, err
	}
	defer leave()
	out.Result, err = s.result(ctx, who, info)
	return out, err
}

// goesOn reports whether a run in this state continues without a person's help.
func goesOn(state journal.State) bool {
	switch state {
	case journal.Running, journal.Drained, journal.Interrupted, journal.Answered:
		return true
	}
	return false
}

// runs reports whether this process is executing the run, which the journal may still list as waiting.
func (s *Server) runs(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[key] != nil
}

// pollEvery is the interval at which a run of another process is polled.
const pollEvery = 200 * time.Millisecond

// settled waits until the run has stopped in this process or ctx is done, and returns the run. If this process does not execute
// the run, it returns the run after a short delay.
func (s *Server) settled(ctx context.Context, info journal.RunInfo) (journal.RunInfo, error) {
	s.mu.Lock()
	run := s.active[info.ID]
	s.mu.Unlock()
	if run != nil {
		if waitFor(ctx, run.ended) == nil { // otherwise the run's state in the journal is returned
			return s.left(context.WithoutCancel(ctx), run)
		}
	} else {
		_ = waitFor(ctx, after(pollEvery))
	}
	return s.exactly(context.WithoutCancel(ctx), info.ID)
}

func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}

func (s *Server) getNode(w http.ResponseWriter, r *http.Request, who Principal) error {
	info, err := s.find(r, who)
	if err != nil {
		return err
	}
	n, err := s.cfg.Journal.Node(r.Context(), info.ID, r.PathValue("node"))
	if err != nil {
		return err
	}
	n.Meta = originIn(who, n.Meta)
	return reply(w, http.StatusOK, api.Node(n))
}

func (s *Server) cancelRun(w http.ResponseWriter, r *http.Request, who Principal) error {
	info, err := s.find(r, who)
	if err != nil {
		return err
	}
	if err := s.stop(r.Context(), info); err != nil {
		return err
	}
	if info, err = s.find(r, who); err != nil {
		return err
	}
	return reply(w, http.StatusOK, run(who, info))
}

// resumeRun resumes a stopped run. If the run has failed, its failed step is retried.
func (s *Server) resumeRun(w http.ResponseWriter, r *http.Request, who Principal) error {
	var how api.Resume
	if r.ContentLength != 0 {
		if err := readBody(r, &how); err != nil {
			return err
		}
	}
	info, err := s.find(r, who)
	if err != nil {
		return err
	}
	if err := s.restart(r.Context(), who, info, how); err != nil {
		return err
	}
	if info, err = s.find(r, who); err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, run(who, info))
}

// restart resumes a run for a caller. It returns when the run has started, or an error if the run has been refused.
func (s *Server) restart(ctx context.Context, who Principal, info journal.RunInfo, how api.Resume) error {
	if how.Force && !who.may(Force) {
		return lacking(Force)
	}
	if info.State == journal.Done && !how.Lost || info.State == journal.Running {
		return conflict("the run is %s", info.State)
	}
	keep := journal.Options{Force: how.Force}
	if how.Lost {
		lanes, err := view.LostLanes(ctx, s.cfg.Journal, info.ID)
		if err != nil {
			return err
		}
		if len(lanes) == 0 {
			return conflict("the run has no lost lanes")
		}
		for _, l := range lanes {
			keep.Again = append(keep.Again, l.Path)
		}
	}
	active, err := s.resume(ctx, info, task{most: who.Runs, keep: keep})
	if err != nil {
		return err
	}
	if err := waitFor(ctx, active.started); err != nil {
		return err
	}
	select {
	case <-active.ended:
		if errors.As(active.err, new(*journal.ChangedError)) {
			return active.err
		}
	default:
	}
	return nil
}

func (s *Server) removeRun(w http.ResponseWriter, r *http.Request, who Principal) error {
	if err := s.remove(r.Context(), who, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// remove removes one of a caller's runs.
func (s *Server) remove(ctx context.Context, who Principal, id string) error {
	info, err := s.owned(ctx, who, id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	running := s.active[info.ID] != nil
	s.mu.Unlock()
	if running {
		return conflict("the run has not ended: cancel it first")
	}
	return s.cfg.Journal.Remove(context.WithoutCancel(ctx), info.ID) // even if the client disconnects meanwhile
}
