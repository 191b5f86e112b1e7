package serve

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/serve/internal/openai"
)

// A conversation is a chat as the command chat keeps it: each turn is a run, with these labels.
const (
	chatLabel    = "chat"         // the id of the conversation
	turnLabel    = "chat-turn"    // the number of the turn, from 1
	afterLabel   = "chat-after"   // the number of the turn that it continues, 0 for none
	messageLabel = "chat-message" // the client's id of the message that it answers
)

// chatName matches the ids of conversations, from which the names of their runs are made.
var chatName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$`)

func turnID(chat string, number int) string { return chat + "-turn-" + strconv.Itoa(number) }

// maxReplies bounds the replies that are looked at to find the turn that a message follows.
const maxReplies = 32

// A conversation is one of a caller with a pipeline.
type conversation struct {
	*Server
	ctx  context.Context
	who  Principal
	p    *Pipeline
	name string
}

func (s *Server) conversation(ctx context.Context, who Principal, pipeline, name string) (c conversation, err error) {
	p := s.pipelines[pipeline]
	switch {
	case p == nil:
		return c, s.noPipeline(pipeline)
	case !chatName.MatchString(name):
		return c, invalid("the id of the conversation %.100q: want up to 80 of a-z, A-Z, 0-9, \".\", \"-\" and \"_\", a letter or digit first", name)
	}
	return conversation{s, ctx, who, p, name}, nil
}

// newest returns the newest turn with the labels, or journal.ErrNoRun.
func (c conversation) newest(labels map[string]string) (journal.RunInfo, error) {
	q := journal.Query{Labels: map[string]string{chatLabel: c.name}, Limit: 1}
	if c.who.Tenant == "" { // no query leaves tenants out
		q.Limit = somePage
	}
	maps.Copy(q.Labels, c.who.labels())
	maps.Copy(q.Labels, labels)
	for info, err := range c.each(c.ctx, q) {
		if err != nil {
			return journal.RunInfo{}, err
		}
		if c.owns(info) {
			return info, c.ours(info)
		}
	}
	return journal.RunInfo{}, journal.ErrNoRun
}

// owns reports whether a run is of the caller's tenant. A caller without one sees the runs of all, and continues
// the conversations of none.
func (c conversation) owns(info journal.RunInfo) bool {
	return info.Labels[tenantLabel] == c.who.Tenant
}

// ours checks that a run of the conversation is one of the pipeline.
func (c conversation) ours(info journal.RunInfo) error {
	if info.Pipeline != c.p.Name {
		return conflict("the conversation %q is one with the pipeline %q: choose another id", c.name, info.Pipeline)
	}
	return nil
}

// turn returns the turn with the name of a run, or journal.ErrNoRun.
func (c conversation) turn(run string) (journal.RunInfo, error) {
	info, err := c.owned(c.ctx, c.who, run)
	if err == nil && (info.Labels[chatLabel] != c.name || !c.owns(info)) {
		err = journal.ErrNoRun
	}
	if err == nil {
		err = c.ours(info)
	}
	return info, err
}

// before returns the turn that a request follows: that of the newest reply that the client has. A client
// that sends no replies means the newest turn, unless it replaces its first message.
func (c conversation) before(req *turn.Request) (journal.RunInfo, error) {
	for i, id := range req.Replies {
		if i == maxReplies {
			return journal.RunInfo{}, conflict("none of the newest %d replies before the message is one of the conversation %q: send the ids that came with its replies, or only the message to continue its newest turn", maxReplies, c.name)
		}
		if info, err := c.turn(turn.Run(id)); !errors.Is(err, journal.ErrNoRun) {
			return info, err
		}
	}
	if req.Again || req.Edited {
		return journal.RunInfo{}, journal.ErrNoRun
	}
	return c.newest(nil)
}

// follow does what a request asks for, and returns the run that replies, and the id of its message. The
// same request again does nothing and returns the same run.
func (c conversation) follow(req *turn.Request) (info journal.RunInfo, reply string, err error) {
	if req.Join {
		if info, err = c.newest(nil); errors.Is(err, journal.ErrNoRun) {
			err = nil
		}
		return info, nameOf(c.who, info.ID), err
	}
	if !c.who.may(Start) && !c.who.may(Answer) {
		if len(req.Answers)+len(req.Results) > 0 {
			return info, "", lacking(Answer)
		}
		return info, "", lacking(Start)
	}
	if n := len(req.Message); n > bounds.LabelValue || n == 0 && len(req.Answers)+len(req.Results) == 0 {
		return info, "", invalid("the id of the last message has %d bytes: want 1 to %d, the same if the message is sent again", n, bounds.LabelValue)
	}
	for _, a := range req.Answers {
		run, _, _, ok := turn.Question(a.ID)
		if !ok {
			return info, "", invalid("the question %.100q is none of this server: want the id that came with it", a.ID)
		}
		if info, err = c.turn(run); err == nil {
			err = c.reply(info, a, req.Message)
		}
		if err != nil {
			return info, "", err
		}
	}
	if len(req.Results) > 0 {
		if info, err = c.results(req.Results); err != nil {
			return info, "", err
		}
	}
	if len(req.Answers)+len(req.Results) > 0 {
		reply = req.Reply
		if req.Message != "" {
			reply = turn.ID(nameOf(c.who, info.ID), req.Message)
		}
		return info, reply, nil
	}
	at, err := c.before(req)
	switch {
	case errors.Is(err, journal.ErrNoRun):
	case err != nil:
		return info, "", err
	case !req.Again && at.Labels[messageLabel] != req.Message: // else it is the message that the turn answers
		if answered, err := c.answered(at, req); answered || err != nil {
			return at, turn.ID(nameOf(c.who, at.ID), req.Message), err
		}
	}
	info, err = c.next(at, req)
	return info, nameOf(c.who, info.ID), err
}

// reply answers a question of a turn, in a message or else in what follows one.
func (c conversation) reply(info journal.RunInfo, a turn.Answer, message string) error {
	if !c.who.may(Answer) {
		return lacking(Answer)
	}
	who := c.who
	if message != "" {
		who.By = turn.By(cmp.Or(who.by(), "a chat client"), message)
	}
	_, path, version, _ := turn.Question(a.ID)
	for q, err := range journal.EachQuestion(c.ctx, c.cfg.Journal, journal.QuestionQuery{Run: info.ID, Path: path}) {
		if err != nil {
			return err
		}
		response, err := a.Of(q)
		if err != nil {
			return invalid("%v", err)
		}
		return c.answer(c.ctx, who, info, api.Answer{Question: path, Response: response, Cancel: a.Cancel, Version: version})
	}
	return notFound("the run asks no question %q", path)
}

// results takes the results of calls that the client has executed, of the calls of one turn. Results of other calls, which
// the client has from the server, are left out.
func (c conversation) results(all []turn.Answer) (info journal.RunInfo, err error) {
	if info, err = c.turn(turn.Run(all[len(all)-1].ID)); err != nil {
		return info, err
	}
	if !c.who.may(Answer) {
		return info, lacking(Answer)
	}
	calls := map[string]journal.Question{}
	for q, err := range journal.EachQuestion(c.ctx, c.cfg.Journal, journal.QuestionQuery{Run: info.ID}) {
		if err != nil {
			return info, err
		}
		if q.Call != nil && q.Call.Client {
			calls[turn.CallID(nameOf(c.who, info.ID), &q)] = view.Brief(q)
		}
	}
	for _, a := range all {
		q, ok := calls[a.ID]
		if !ok {
			continue
		}
		if err := c.answer(c.ctx, c.who, info, api.Answer{Question: q.Path, Response: a.Response, Version: q.Version}); err != nil {
			return info, err
		}
	}
	return info, nil
}

// answered takes a message as the answer to the one question of a turn that waits, and reports whether
// it is one. It also is if it has answered one before, and the client did not get what followed.
func (c conversation) answered(at journal.RunInfo, req *turn.Request) (bool, error) {
	var open []journal.Question
	client := false // executes a call
	for q, err := range journal.EachQuestion(c.ctx, c.cfg.Journal, journal.QuestionQuery{Run: at.ID}) {
		switch {
		case err != nil:
			return false, err
		case saidIn(q, req.Message) && q.Response == req.Text():
			return true, nil
		case q.Open():
			client = client || q.Call != nil && q.Call.Client
			open = append(open, view.Brief(q))
		}
	}
	if at.State != journal.Waiting {
		return false, nil
	}
	run := nameOf(c.who, at.ID)
	switch {
	case client:
		return true, conflict("the turn before waits for results of calls that the client executes: send them, or cancel its run %s", run)
	case len(open) == 1:
		return true, c.reply(at, turn.Answer{ID: turn.QuestionID(run, &open[0]), Response: req.Text()}, req.Message)
	}
	var ids []string
	for _, q := range open {
		ids = append(ids, turn.QuestionID(run, &q))
	}
	return true, invalid("the turn before asks %d questions, and the message does not say which one it answers: want an answer to each of %s", len(open), strings.Join(ids, ", "))
}

// saidIn reports whether a message has answered a question.
func saidIn(q journal.Question, message string) bool { return !q.Open() && turn.In(q.By, message) }

// next starts the turn that answers a message, after another one.
func (c conversation) next(at journal.RunInfo, req *turn.Request) (journal.RunInfo, error) {
	if !c.who.may(Start) {
		return at, lacking(Start)
	}
	if at.ID != "" && !over(at.State) && at.State != journal.Refused {
		if at.Labels[messageLabel] == req.Message && !req.Again {
			return at, nil
		}
		return at, conflict("the turn before is %s: wait for it, or cancel its run %s", at.State, nameOf(c.who, at.ID))
	}
	last, err := c.newest(nil) // before the message is looked for, so that one that comes twice at once gets one number
	if err != nil && !errors.Is(err, journal.ErrNoRun) {
		return at, err
	}
	same, err := c.newest(map[string]string{messageLabel: req.Message})
	switch {
	case errors.Is(err, journal.ErrNoRun):
	case err != nil:
		return at, err
	case req.Again && (same.State == journal.Failed || same.State == journal.Canceled):
		return c.again(same) // what its tools did is recorded
	case req.Again:
		if err = c.replace(last, same); err == nil {
			at, err = c.number(same.Labels[afterLabel])
		}
		if err != nil {
			return at, err
		}
	default: // the same request again, or a message that was edited
		start, given, err := c.request(same.Labels[turnLabel], same.Labels[afterLabel], req)
		if err != nil {
			return at, err
		}
		if src, _ := sourceOf(same); src.Request == digestOf(start, given) {
			return c.launchTurn(start, given)
		}
		if err := c.replace(last, same); err != nil {
			return at, err
		}
	}
	n, _ := strconv.Atoi(last.Labels[turnLabel])
	start, given, err := c.request(strconv.Itoa(n+1), cmp.Or(at.Labels[turnLabel], "0"), req)
	if err != nil {
		return at, err
	}
	info, err := c.launchTurn(start, given)
	if p := (*api.Problem)(nil); errors.As(err, &p) && p.Type == api.Conflict {
		err = conflict("another message started turn %d of the conversation at the same time: send the message again", n+1)
	}
	return info, err
}

// replace cancels turns whose message is asked again or was edited, so that nothing of them happens later.
func (c conversation) replace(turns ...journal.RunInfo) error {
	for _, t := range turns {
		now, err := c.turn(t.ID)
		if err == nil && !over(now.State) {
			err = c.stop(c.ctx, now)
		}
		if p := (*api.Problem)(nil); err != nil && !(errors.As(err, &p) && p.Type == api.Conflict) { // or it has just ended
			return err
		}
	}
	return nil
}

// number returns the turn with a number, and no turn if there is none.
func (c conversation) number(n string) (journal.RunInfo, error) {
	i, _ := strconv.Atoi(n)
	info, err := c.turn(turnID(c.name, i))
	if errors.Is(err, journal.ErrNoRun) {
		return journal.RunInfo{}, nil
	}
	return info, err
}

// request makes the request for the turn with a number, which continues another one.
func (c conversation) request(number, after string, req *turn.Request) (start api.Start, given openai.Given, err error) {
	start = api.Start{Pipeline: c.p.Name, Interactive: true, Labels: map[string]string{chatLabel: c.name, turnLabel: number, afterLabel: after, messageLabel: req.Message}}
	backend := gateway{c.Server, c.who}
	model := backend.model(c.p)
	said, err := c.said(after, backend, model)
	if err != nil {
		return start, nil, err
	}
	start.Input, given, err = model.Input(&llm.Request{Tools: req.Tools, Messages: append(said, llm.Message{Role: llm.RoleUser, Content: req.Content})})
	return start, given, ofOpenAI(err)
}

// said returns the conversation up to and including the turn with a number. Of a turn without an answer it has what
// its agent did; one whose agent has not started is left out.
func (c conversation) said(number string, backend gateway, model openai.Model) (said []llm.Message, err error) {
	at, err := c.number(number)
	for err == nil && at.ID != "" && at.State != journal.Done {
		if said, err = view.Broken(c.ctx, c.cfg.Journal, at); said != nil || err != nil {
			return said, err
		}
		at, err = c.number(at.Labels[afterLabel])
	}
	if err != nil || at.ID == "" {
		return nil, err
	}
	ended, err := c.await(c.ctx, c.who, at)
	if err == nil {
		said, _, err = model.Conversation(c.ctx, backend, ended)
	}
	return said, ofOpenAI(err)
}

// again resumes a turn that ended without an answer.
func (c conversation) again(at journal.RunInfo) (journal.RunInfo, error) {
	if err := c.restart(c.ctx, c.who, at, api.Resume{}); err != nil {
		return at, err
	}
	return c.turn(at.ID)
}

// ofOpenAI makes a problem of an error in the form of OpenAI.
func ofOpenAI(err error) error {
	var e *openai.Error
	if errors.As(err, &e) {
		return problem(api.Invalid, e.Status, "%s", e.Message)
	}
	return err
}

// launchTurn starts a turn, or returns the one that the same request started.
func (c conversation) launchTurn(start api.Start, given openai.Given) (journal.RunInfo, error) {
	n, _ := strconv.Atoi(start.Labels[turnLabel])
	info, _, err := c.startOf(c.ctx, c.who, c.p, turnID(c.name, n), start, protocol{chat: true, given: given})
	return info, err
}
