package page

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// chatLabel is the label that contains the id of a run's conversation.
const chatLabel = "chat"

// A thread is a conversation. Each turn is a run.
type thread struct {
	Chat  string
	Turns []exchange // oldest first
	More  bool       // earlier turns are left out
	Cost  budget.Total
}

// An exchange is the message and the reply of one turn.
type exchange struct {
	runRow
	Said, Reply string
	Tools       int    // number of tool calls
	Agent       string // path of the agent; "" if the run has none
}

// mostTurns is the maximum number of turns on a page.
const mostTurns = 50

// chat serves the page of a conversation.
func (p *pages) chat(w http.ResponseWriter, r *http.Request, v View) error {
	body := thread{Chat: r.PathValue("chat")}
	filter := url.Values{"label." + chatLabel: {body.Chat}}
	q, err := p.selects(filter)
	if err != nil {
		return err
	}
	q.Labels, q.Limit = map[string]string{chatLabel: body.Chat}, mostTurns+1
	runs, err := v.Journal.Runs(r.Context(), q)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return missing("There is no conversation %q.", body.Chat)
	}
	body.More = len(runs) > mostTurns
	runs = runs[:min(len(runs), mostTurns)]
	slices.Reverse(runs)
	for _, run := range runs {
		one, err := exchangeOf(r.Context(), v, run)
		if err != nil {
			return err
		}
		body.Cost = body.Cost.Add(run.Usage)
		body.Turns = append(body.Turns, one)
	}
	return v.show(w, r, "chat", p.live(frame{Title: body.Chat, Here: "runs", Body: body}, "/runs?"+filter.Encode()))
}

// exchangeOf reads a turn: the last message before its agent's reply, and the reply.
func exchangeOf(ctx context.Context, v View, run journal.RunInfo) (exchange, error) {
	e := exchange{runRow: rowOf(run)}
	if err := e.asks(ctx, v); err != nil {
		return e, err
	}
	path, opening, err := agentIn(ctx, v, run.ID)
	if err != nil || opening == nil {
		return e, err
	}
	e.Agent = path
	left := allowance(shownBytes / 4)
	for i := len(opening.Messages) - 1; i >= 0 && e.Said == ""; i-- {
		if m := opening.Messages[i]; m.Role == llm.RoleUser {
			e.Said = left.take(m.Text())
		}
	}
	turns, tools, err := stepsOfAgent(ctx, v, run.ID, path)
	if err != nil {
		return e, err
	}
	e.Tools = len(tools)
	turns = slices.DeleteFunc(turns, func(s *journal.Step) bool { return !s.Recorded })
	if len(turns) > 0 {
		last := turns[len(turns)-1]
		reply, err := view.ReplyOf(ctx, v.Journal, run.ID, last.Path)
		if err != nil {
			return e, err
		}
		if reply != nil {
			e.Reply = left.take(said(reply))
		}
	}
	return e, nil
}

// agentIn returns the path and the opening of a run's outermost agent. A run may have a million steps, so only the first branches
// of the first levels are read: they contain the agent that talks to a person.
func agentIn(ctx context.Context, v View, run string) (string, *view.Opening, error) {
	o, err := v.Journal.Outline(ctx, run)
	if err != nil {
		return "", nil, err
	}
	const levels, branches = 4, 20
	parts := []string{""}
	for range levels {
		var below []string
		for _, part := range parts {
			l, err := o.Level(ctx, part, journal.Page{Limit: branches})
			if err != nil {
				return "", nil, err
			}
			for _, b := range l.Branches {
				below = append(below, b.Path)
				if b.Step == nil || b.Step.Kind != "leaf" {
					continue
				}
				if opening, err := view.OpeningOf(ctx, v.Journal, run, b.Path); err != nil || opening != nil {
					return b.Path, opening, err
				}
			}
		}
		parts = below[:min(len(below), branches)]
	}
	return "", nil, nil
}

// chatURL returns the address of a conversation.
func chatURL(chat string) string { return "/chats/" + url.PathEscape(chat) }
