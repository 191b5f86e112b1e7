package serve

import (
	"context"
	"maps"
	"net/http"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// isTurn reports whether a run is a turn of a conversation.
func isTurn(info journal.RunInfo) bool {
	return info.Labels[chatLabel] != "" && info.Labels[turnLabel] != ""
}

// shownLabels returns the labels of a run without the ones that order the turns of a conversation.
func shownLabels(info journal.RunInfo) map[string]string {
	if !isTurn(info) {
		return info.Labels
	}
	labels := maps.Clone(info.Labels)
	for _, name := range []string{turnLabel, afterLabel, messageLabel} {
		delete(labels, name)
	}
	return labels
}

// listThreads lists conversations as its query says: pipeline, before and limit. The pipeline may be in the path. A page looks at maxPage runs, as
// newest turns or as further ones, and may therefore end before its limit.
func (s *Server) listThreads(w http.ResponseWriter, r *http.Request, who Principal) error {
	values := r.URL.Query()
	if name := r.PathValue("name"); name != "" {
		if s.pipelines[name] == nil {
			return s.noPipeline(name)
		}
		values.Set("pipeline", name)
	}
	for name := range values {
		if name != "pipeline" && name != "before" && name != "limit" {
			return unreadable("unknown parameter %q: want pipeline, before or limit", name)
		}
	}
	q, err := s.selected(r.Context(), who, values)
	if err != nil {
		return err
	}
	page, err := s.threads(r.Context(), who, q)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, page)
}

func (s *Server) threads(ctx context.Context, who Principal, q journal.Query) (api.Threads, error) {
	page, limit, looked := api.Threads{Threads: []api.Thread{}}, q.Limit, 0
	q.Limit = min(maxPage, 4*limit)
	seen := map[[3]string]bool{} // on this page
	for info, err := range s.each(ctx, q) {
		if err != nil {
			return page, err
		}
		key := [3]string{info.Pipeline, info.Labels[chatLabel], info.Labels[tenantLabel]}
		if looked++; isTurn(info) && !seen[key] {
			seen[key] = true
			t, turns, err := s.thread(ctx, who, info)
			if err != nil {
				return page, err
			}
			if looked += turns; t.Turns > 0 {
				page.Threads = append(page.Threads, t)
			}
		}
		if len(page.Threads) == limit || looked >= maxPage {
			page.Next = nameOf(who, info.ID)
			break
		}
	}
	return page, nil
}

// thread reads the turns of a conversation, and returns how many it looked at. It has no turns if the one given is
// not the newest.
func (s *Server) thread(ctx context.Context, who Principal, newest journal.RunInfo) (t api.Thread, looked int, err error) {
	name, tenant := newest.Labels[chatLabel], newest.Labels[tenantLabel]
	q := journal.Query{Pipeline: newest.Pipeline, Labels: map[string]string{chatLabel: name}, Limit: somePage}
	if tenant != "" {
		q.Labels[tenantLabel] = tenant
	}
	for info, err := range s.each(ctx, q) {
		if err != nil {
			return t, looked, err
		}
		looked++
		if !isTurn(info) || info.Labels[tenantLabel] != tenant {
			continue
		}
		if t.Turns == 0 {
			if info.ID != newest.ID {
				return t, looked, nil
			}
			t = api.Thread{ID: name, Pipeline: info.Pipeline, Newest: nameOf(who, info.ID), State: info.State, Last: info.Started}
		}
		t.Turns++
		t.Started, t.Usage = info.Started, t.Usage.Add(info.Usage)
		if looked >= maxPage {
			t.Partly = true
			break
		}
	}
	return t, looked, nil
}
