package ui

import (
	"errors"
	"net/http"
	"slices"

	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/x/ui/internal/uistream"
)

// maxHistory is the maximum number of turns on a page of a conversation's history; pageBytes is the maximum size of the page.
const (
	maxHistory = 100
	pageBytes  = 4 << 20
)

// getHistory sends the newest messages of a conversation in the AI SDK's format. A reply that is being written is omitted,
// because its stream contains the whole reply.
func getHistory(w http.ResponseWriter, r *http.Request, by protocol.Caller) error {
	c, err := conversationOf(r.Context(), by, r.PathValue("name"), r.PathValue("chat"))
	if err != nil {
		return err
	}
	page, next, err := c.history(r.URL.Query().Get("before"))
	if err != nil {
		return err
	}
	return reply(w, struct {
		Messages []uistream.Message `json:"messages"`
		Next     string             `json:"next,omitempty"`
	}{uistream.Messages(page), next})
}

// history returns the newest exchanges of the conversation, or the exchanges before the turn of a run. Next is the value of
// before for the next page.
func (c conversation) history(before string) (page []turn.Exchange, next string, err error) {
	leave, err := c.Place(c.ctx)
	if err != nil {
		return nil, "", err
	}
	defer leave()
	at, err := c.newest(nil)
	if before != "" {
		if at, err = c.turn(before); err == nil {
			at, err = c.number(at.Labels[turn.AfterLabel])
		}
	} else if errors.Is(err, journal.ErrNoRun) {
		return nil, "", nil
	}
	for turns, size := 0, 0; err == nil && at.ID != ""; turns++ {
		var of []turn.Exchange
		if of, err = c.exchanges(at); err != nil {
			return nil, "", err
		}
		for i := range of {
			size += of[i].Size()
		}
		if turns > 0 && (size > pageBytes || turns == maxHistory) {
			return page, next, nil
		}
		page, next = append(of, page...), at.ID
		at, err = c.number(at.Labels[turn.AfterLabel])
	}
	return page, "", err
}

// exchanges returns the messages of a turn as exchanges.
func (c conversation) exchanges(info journal.RunInfo) ([]turn.Exchange, error) {
	input, err := journal.Input(c.ctx, c.Journal(), info)
	if err != nil {
		return nil, err
	}
	ended, parts, cuts, err := c.Said(c.ctx, info)
	if err != nil {
		return nil, err
	}
	of := turn.Exchange{Message: info.Labels[turn.MessageLabel], Content: c.p.Message(input), Reply: ended.ID, Run: ended}
	if of.Message == "" { // the turn was started by the command
		of.Message = turn.ID(ended.ID, "message")
	}
	var all []turn.Exchange
	from := 0
	for i, cut := range cuts {
		message := turn.MessageOf(cut.By)
		said := llm.Part{Text: turn.Said(cut.Question)}
		if i > 0 && message == turn.MessageOf(cuts[i-1].By) { // the message has answered several questions
			if cut.Call == nil {
				of.Content = append(of.Content, said)
			}
			continue
		}
		before := of
		before.Parts, from = parts[from:max(from, min(cut.Parts, len(parts)))], max(from, min(cut.Parts, len(parts)))
		if cut.Call == nil {
			before.Parts = append(slices.Clip(before.Parts), turn.Part{Kind: turn.Ask, ID: cut.Path, Question: &cut.Question})
		}
		before.Run.State, before.Run.Result, before.Run.Failure = journal.Waiting, nil, nil
		all = append(all, before)
		of = turn.Exchange{Message: message, Content: []llm.Part{said}, Reply: turn.ID(ended.ID, message), Run: ended}
	}
	if of.Parts = parts[from:]; c.Going(info) {
		of.Reply, of.Parts = "", nil
	}
	return append(all, of), nil
}
