package ui

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// tenantLabel is the label that contains the tenant of a run.
const tenantLabel = "tenant"

// somePage is the number of runs that are read at a time as long as nothing is known about their tenants.
const somePage = 16

// maxChat is the maximum length of a conversation id in bytes.
const maxChat = 200

// chatName matches the conversation ids that can be used as prefixes of run names.
var chatName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$`)

// turnID returns the run name for a turn. Run names must be usable in paths and commands, so a conversation id that is not
// is replaced by its digest.
func turnID(chat string, number int) string {
	if !chatName.MatchString(chat) {
		sum := sha256.Sum256([]byte(chat))
		chat = "chat-" + hex.EncodeToString(sum[:16])
	}
	return chat + "-turn-" + strconv.Itoa(number)
}

// maxReplies is the maximum number of replies that are examined to find the turn to which a message belongs.
const maxReplies = 32

// A conversation is a caller's conversation with a pipeline. As in the command chat, each turn is a run with the labels of
// package turn.
type conversation struct {
	protocol.Caller
	ctx  context.Context
	p    talk.Model
	name string
}

func conversationOf(ctx context.Context, by protocol.Caller, pipeline, name string) (c conversation, err error) {
	p, err := by.Pipeline(pipeline)
	switch {
	case err != nil:
		return c, err
	case name == "" || len(name) > maxChat || strings.ContainsFunc(name, unicode.IsControl):
		return c, invalid("the id of the conversation %.100q has %d bytes: want 1 to %d without control characters", name, len(name), maxChat)
	}
	return conversation{by, ctx, p, name}, nil
}

// newest returns the newest turn with the labels. If there is none, the error is journal.ErrNoRun.
func (c conversation) newest(labels map[string]string) (journal.RunInfo, error) {
	q := journal.Query{Labels: map[string]string{turn.ChatLabel: c.name}, Limit: 1}
	if c.Tenant() == "" { // a query cannot exclude tenants
		q.Limit = somePage
	}
	maps.Copy(q.Labels, labels)
	for info, err := range c.Runs(c.ctx, q) {
		if err != nil {
			return journal.RunInfo{}, err
		}
		if c.owns(info) && isTurn(info) { // anyone can set the label of a conversation on a run
			return info, c.ours(info)
		}
	}
	return journal.RunInfo{}, journal.ErrNoRun
}

// owns reports whether a run belongs to the caller's tenant. A caller without a tenant can see the runs of all tenants, but
// cannot continue their conversations.
func (c conversation) owns(info journal.RunInfo) bool {
	return info.Labels[tenantLabel] == c.Tenant()
}

// ours returns an error if a run of the conversation belongs to another pipeline.
func (c conversation) ours(info journal.RunInfo) error {
	if info.Pipeline != c.p.Name {
		return conflict("the conversation %q is one with the pipeline %q: choose another id", c.name, info.Pipeline)
	}
	return nil
}

// turn returns the turn whose run has the given name. If there is no such turn, the error is journal.ErrNoRun.
func (c conversation) turn(run string) (journal.RunInfo, error) {
	info, err := c.Journal().Find(c.ctx, run)
	if err == nil && (info.Labels[turn.ChatLabel] != c.name || !c.owns(info)) {
		err = journal.ErrNoRun
	}
	if err == nil {
		err = c.ours(info)
	}
	return info, err
}

// before returns the turn that a request follows: the turn of the newest reply that the client has or, if the client sends no
// replies, the newest turn. If the client replaces its first message, there is no such turn.
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

// followed is the outcome of a request.
type followed struct {
	info  journal.RunInfo // run that produces the reply
	reply string          // id of the reply's message
	old   bool            // the request contains only answers that were given before
}

// follow executes a request. Repeating a request has no further effect and returns the same run.
func (c conversation) follow(req *turn.Request) (t followed, err error) {
	if req.Join {
		if t.info, err = c.newest(nil); errors.Is(err, journal.ErrNoRun) {
			err = nil
		}
		return t, err
	}
	answers := len(req.Answers)+len(req.Results) > 0
	noStart, noAnswer := c.Needs(protocol.Start), c.Needs(protocol.Answer)
	switch n := len(req.Message); {
	case noStart != nil && noAnswer != nil && answers:
		return t, noAnswer
	case noStart != nil && noAnswer != nil:
		return t, noStart
	case n > bounds.LabelValue || n == 0 && !answers:
		return t, invalid("the id of the last message has %d bytes: want 1 to %d, the same if the message is sent again", n, bounds.LabelValue)
	case len(req.Tools) > 0 && !c.p.TakesTools():
		req.Tools, req.Notice = nil, "the pipeline "+c.p.Name+" does not accept client tools, so they are ignored: publish an agent with tool.ClientTools to offer them"
	}
	if err := turn.CheckTools(req.Tools); err != nil {
		return t, invalid("%v", err)
	}
	if answers {
		return c.answers(req)
	}
	at, err := c.before(req)
	if err == nil && at.Labels[turn.MessageLabel] == req.Message { // this turn already answers the message
		at, err = c.number(at.Labels[turn.AfterLabel])
	}
	switch {
	case errors.Is(err, journal.ErrNoRun):
	case err != nil:
		return t, err
	case !req.Again && at.ID != "":
		answered := false
		if at, answered, err = c.answered(at, req); answered || err != nil {
			return followed{at, turn.ID(at.ID, req.Message), false}, err
		}
	}
	at, err = c.next(at, req)
	return followed{at, at.ID, false}, err
}

// next starts the turn that answers a message. It follows the given turn.
func (c conversation) next(at journal.RunInfo, req *turn.Request) (journal.RunInfo, error) {
	if err := c.Needs(protocol.Start); err != nil {
		return at, err
	}
	if at.ID != "" && !over(at.State) && at.State != journal.Refused {
		if !req.Again {
			return at, conflict("the turn before is %s: cancel its run %s to continue without it", at.State, at.ID)
		}
		if err := c.replace(at); err != nil { // the message was used to answer a question of that turn
			return at, err
		}
	}
	last, err := c.newest(nil) // read before searching for the message, so that a message sent twice concurrently gets only one number
	if err != nil && !errors.Is(err, journal.ErrNoRun) {
		return at, err
	}
	same, err := c.newest(map[string]string{turn.MessageLabel: req.Message})
	switch {
	case errors.Is(err, journal.ErrNoRun):
	case err != nil:
		return at, err
	case req.Again && (same.State == journal.Failed || same.State == journal.Canceled):
		return c.again(same) // what its tools have done is recorded
	case req.Again:
		if err = c.replace(last, same); err == nil {
			at, err = c.number(same.Labels[turn.AfterLabel])
		}
		if err != nil {
			return at, err
		}
	default: // the same request was sent again, or a message was edited
		start, given, err := c.request(same.Labels[turn.NumberLabel], same.Labels[turn.AfterLabel], req)
		if err != nil {
			return at, err
		}
		if info, err := c.launch(start, given); !isConflict(err) {
			return info, err
		}
		if err = c.replace(last, same); err == nil && at.ID == "" {
			at, err = c.number(same.Labels[turn.AfterLabel])
		}
		if err != nil {
			return at, err
		}
	}
	if last.State == journal.Waiting && last.ID != at.ID { // the client does not have this turn
		if err := c.replace(last); err != nil {
			return at, err
		}
	}
	n, _ := strconv.Atoi(last.Labels[turn.NumberLabel])
	start, given, err := c.request(strconv.Itoa(n+1), cmp.Or(at.Labels[turn.NumberLabel], "0"), req)
	if err != nil {
		return at, err
	}
	info, err := c.launch(start, given)
	if isConflict(err) {
		err = conflict("another message started turn %d of the conversation at the same time: send the message again", n+1)
	}
	return info, err
}

// replace cancels turns whose message was repeated or edited, and withdraws their questions, because an answer would resume a
// canceled run.
func (c conversation) replace(turns ...journal.RunInfo) error {
	for _, t := range turns {
		now, err := c.turn(t.ID)
		if err == nil && !over(now.State) {
			err = c.Cancel(c.ctx, now.ID)
		}
		if err != nil && !isConflict(err) { // a conflict means that the run has just ended
			return err
		}
		for q, err := range c.Journal().EachQuestion(c.ctx, journal.QuestionQuery{Run: t.ID, Open: true}) {
			if err == nil {
				err = c.Withdraw(c.ctx, t.ID, q.Path)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// number returns the turn with the given number, or the zero value if there is none.
func (c conversation) number(n string) (journal.RunInfo, error) {
	i, _ := strconv.Atoi(n)
	info, err := c.turn(turnID(c.name, i))
	if errors.Is(err, journal.ErrNoRun) {
		return journal.RunInfo{}, nil
	}
	return info, err
}

// request returns the request that starts the turn with the given number. The argument after is the number of the turn that it
// continues.
func (c conversation) request(number, after string, req *turn.Request) (start api.Start, given talk.Given, err error) {
	start = api.Start{Pipeline: c.p.Name, Interactive: true, Labels: map[string]string{turn.ChatLabel: c.name, turn.NumberLabel: number, turn.AfterLabel: after, turn.MessageLabel: req.Message}}
	said, err := c.said(after)
	if err != nil {
		return start, nil, err
	}
	start.Input, given, err = c.p.Input(&llm.Request{Tools: req.Tools, Messages: append(said, llm.Message{Role: llm.RoleUser, Content: req.Content})})
	return start, given, ofTalk(err)
}

// said returns the messages of the conversation up to and including the turn with the given number. For a turn without an answer,
// they are the actions of the turn's agent. A turn whose agent has not started is omitted.
func (c conversation) said(number string) (said []llm.Message, err error) {
	at, err := c.number(number)
	for err == nil && at.ID != "" && at.State != journal.Done {
		if said, err = view.Broken(c.ctx, c.Journal(), at); said != nil || err != nil {
			return said, err
		}
		at, err = c.number(at.Labels[turn.AfterLabel])
	}
	if err != nil || at.ID == "" {
		return nil, err
	}
	ended, err := c.Await(c.ctx, at)
	if err == nil {
		said, _, err = c.p.Conversation(c.ctx, c.Journal(), ended)
	}
	return said, ofTalk(err)
}

// again resumes a turn that ended without an answer.
func (c conversation) again(at journal.RunInfo) (journal.RunInfo, error) {
	if err := c.Resume(c.ctx, at.ID, api.Resume{}); err != nil {
		return at, err
	}
	return c.turn(at.ID)
}

// launch starts a turn, or returns the turn if an identical request has already started it.
func (c conversation) launch(start api.Start, given talk.Given) (journal.RunInfo, error) {
	n, _ := strconv.Atoi(start.Labels[turn.NumberLabel])
	return c.Start(c.ctx, turnID(c.name, n), protocol.Run{Start: start, Given: given, Chat: true})
}
