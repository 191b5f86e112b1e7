package ui

import (
	"context"
	"net/http"
	"strconv"

	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// isTurn reports whether a run is a turn of a conversation.
func isTurn(info journal.RunInfo) bool {
	return info.Labels[turn.ChatLabel] != "" && info.Labels[turn.NumberLabel] != ""
}

// listThreads lists conversations by the query parameters pipeline, before and limit. The pipeline can also be in the path. At
// most maxPage runs are examined for a page, including the further turns of its conversations, so a page may end before its
// limit.
func listThreads(w http.ResponseWriter, r *http.Request, c protocol.Caller) error {
	q := journal.Query{Limit: journal.DefaultLimit}
	for name, all := range r.URL.Query() {
		value := all[len(all)-1]
		switch name {
		case "pipeline":
			q.Pipeline = value
		case "before":
			if _, err := c.Journal().Find(r.Context(), value); err != nil {
				return err
			}
			q.Before = value
		case "limit":
			n, err := strconv.Atoi(value)
			if err != nil {
				return unreadable("the parameter limit cannot be read: %v", err)
			}
			if q.Limit = n; n < 1 || n > maxPage {
				return unreadable("limit is %d: want 1 to %d", n, maxPage)
			}
		default:
			return unreadable("unknown parameter %q: want pipeline, before or limit", name)
		}
	}
	if name := r.PathValue("name"); name != "" {
		if _, err := c.Pipeline(name); err != nil {
			return err
		}
		q.Pipeline = name
	}
	page, err := threads(r.Context(), c, q)
	if err != nil {
		return err
	}
	return reply(w, page)
}

// maxPage is the maximum number of runs on a page.
const maxPage = 1000

func threads(ctx context.Context, c protocol.Caller, q journal.Query) (api.Threads, error) {
	page, limit, looked := api.Threads{Threads: []api.Thread{}}, q.Limit, 0
	q.Limit = min(maxPage, 4*limit)
	seen := map[[3]string]bool{} // conversations on this page
	for info, err := range c.Runs(ctx, q) {
		if err != nil {
			return page, err
		}
		key := [3]string{info.Pipeline, info.Labels[turn.ChatLabel], info.Labels[tenantLabel]}
		if looked++; isTurn(info) && !seen[key] {
			seen[key] = true
			t, turns, err := thread(ctx, c, info)
			if err != nil {
				return page, err
			}
			if looked += turns; t.Turns > 0 {
				page.Threads = append(page.Threads, t)
			}
		}
		if len(page.Threads) == limit || looked >= maxPage {
			page.Next = info.ID
			break
		}
	}
	return page, nil
}

// thread returns a conversation and the number of turns that it has examined. If the given turn is not the newest, the thread has
// no turns.
func thread(ctx context.Context, c protocol.Caller, newest journal.RunInfo) (t api.Thread, looked int, err error) {
	name, tenant := newest.Labels[turn.ChatLabel], newest.Labels[tenantLabel]
	q := journal.Query{Pipeline: newest.Pipeline, Labels: map[string]string{turn.ChatLabel: name}, Limit: somePage}
	if tenant != "" {
		q.Labels[tenantLabel] = tenant
	}
	for info, err := range c.Runs(ctx, q) {
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
			t = api.Thread{ID: name, Pipeline: info.Pipeline, Newest: info.ID, State: info.State, Last: info.Started}
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
