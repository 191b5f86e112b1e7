package ui

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// answers applies the answers and tool results that a request contains.
func (c conversation) answers(req *turn.Request) (t followed, err error) {
	t = followed{reply: req.Reply, old: true}
	for _, a := range req.Answers {
		run, _, _, ok := turn.Question(a.ID)
		if !ok {
			return t, invalid("the question id %.100q was not issued by this server: want the id that came with the question", a.ID)
		}
		if t.info, err = c.turn(run); err == nil {
			err = c.reply(&t, a, req)
		}
		if err != nil {
			return t, err
		}
	}
	if len(req.Results) > 0 {
		err = c.results(&t, req.Results)
	}
	if req.Message != "" {
		t.reply, t.old = turn.ID(t.info.ID, req.Message), false
	}
	return t, err
}

// reply answers a question of a turn. The answer is in a message, or in the part that follows it.
func (c conversation) reply(t *followed, a turn.Answer, req *turn.Request) error {
	if err := c.Needs(protocol.Answer); err != nil {
		return err
	}
	by := c.By()
	if req.Message != "" {
		by = turn.By(cmp.Or(by, "a chat client"), req.Message)
	}
	_, path, version, _ := turn.Question(a.ID)
	if path == "" || !view.IsText(path) {
		return notFound("the run asks no question %q", path)
	}
	for q, err := range c.Journal().EachQuestion(c.ctx, journal.QuestionQuery{Run: t.info.ID, Path: path}) {
		if err != nil {
			return err
		}
		if text := req.Text(); a.Cancel && text != "" && q.Call != nil {
			a.Cancel, a.Response = false, turn.Instead(q, text)
		}
		response, err := a.Of(q)
		if err != nil {
			return invalid("%v", err)
		}
		t.old = t.old && !q.Open()
		return c.Answer(c.ctx, t.info.ID, by, api.Answer{Question: path, Response: response, Cancel: a.Cancel, Version: version})
	}
	return notFound("the run asks no question %q", path)
}

// results applies the results of a turn's calls that the client has executed. Results of other calls are ignored,
// because they came from the server.
func (c conversation) results(t *followed, all []turn.Answer) (err error) {
	if t.info, err = c.turn(turn.Run(all[len(all)-1].ID)); err != nil {
		return err
	}
	if err := c.Needs(protocol.Answer); err != nil {
		return err
	}
	calls := map[string]journal.Question{}
	for q, err := range c.Journal().EachQuestion(c.ctx, journal.QuestionQuery{Run: t.info.ID}) {
		if err != nil {
			return err
		}
		if q.Call != nil && q.Call.Client {
			calls[turn.CallID(t.info.ID, &q)] = view.Brief(q)
		}
	}
	for _, a := range all {
		q, ok := calls[a.ID]
		if !ok {
			continue
		}
		t.old = t.old && !q.Open()
		if err := c.Answer(c.ctx, t.info.ID, c.By(), api.Answer{Question: q.Path, Response: a.Response, Version: q.Version}); err != nil {
			return err
		}
	}
	return nil
}

// answered uses a message as the answer to a turn's open question, after waiting until the turn has stopped. It reports whether
// the message is an answer. If the message was used before and the client did not receive the reply, the message counts again: it
// then answers the questions that are still open.
func (c conversation) answered(at journal.RunInfo, req *turn.Request) (now journal.RunInfo, is bool, err error) {
	type question struct {
		turn.Answer
		asked time.Time
		call  bool
	}
	var open []question
	var said time.Time // time at which the message first answered a question
	for {
		open = nil
		for q, err := range c.Journal().EachQuestion(c.ctx, journal.QuestionQuery{Run: at.ID}) {
			response := turn.Instead(q, req.Text())
			switch {
			case err != nil:
				return at, false, err
			case saidIn(q, req.Message) && q.Response == response:
				if said.IsZero() || q.Answered.Before(said) {
					said = q.Answered
				}
			case q.Open():
				open = append(open, question{turn.Answer{ID: turn.QuestionID(at.ID, &q), Response: response}, q.Asked, q.Call != nil})
			}
		}
		if !said.IsZero() {
			open = slices.DeleteFunc(open, func(q question) bool { return !q.asked.Before(said) })
			break
		}
		if !c.Going(at) {
			break
		}
		if at, err = c.Settled(c.ctx, at); err == nil {
			err = c.Closing()
		}
		if err = cmp.Or(err, context.Cause(c.ctx)); err != nil {
			return at, false, err
		}
	}
	if said.IsZero() && (at.State != journal.Waiting || len(open) == 0) {
		return at, false, nil
	}
	if len(open) > 1 && slices.ContainsFunc(open, func(q question) bool { return !q.call }) {
		var ids []string
		for _, q := range open {
			ids = append(ids, q.ID)
		}
		return at, true, invalid("the turn before asks %d questions, and the message does not say which one it answers: want an answer to each of %s", len(open), strings.Join(ids, ", "))
	}
	for _, q := range open {
		if err := c.reply(&followed{info: at}, q.Answer, req); err != nil {
			return at, true, err
		}
	}
	return at, true, nil
}

// saidIn reports whether a message was the answer to a question.
func saidIn(q journal.Question, message string) bool { return !q.Open() && turn.In(q.By, message) }
