package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// A talk is an agent's conversation, or the reply in one of its turns.
type talk struct {
	System   string
	Tools    []string // tools offered when the conversation started
	Params   [][2]string
	Earlier  int // number of messages omitted
	Messages []message
	Running  bool // more messages may follow
}

// A message is a message of a conversation, with the results of the tools that it calls.
type message struct {
	Role      string
	Text      string
	Reasoning string
	Media     int // number of media, such as pictures
	Calls     []toolCall
	Turn      *journal.Step // turn that created the message, or nil
	URL       string        // address of the turn, "" in a file
	By        string        // the model and its stop reason
}

// A toolCall is a call of a tool.
type toolCall struct {
	Name   string
	Arg    string // the argument that best identifies the call
	Input  string
	Diff   []line // lines changed by an edit
	Result string
	Failed bool
	Done   bool              // the call has a result
	Step   *journal.Step     // step of the call; nil if unknown
	Asked  *journal.Question // the question whether the call may run; nil if not asked

	id string
}

// Title returns a description of the call in one line.
func (c toolCall) Title() string { return strings.TrimSpace(c.Name + " " + c.Arg) }

// Open reports whether the call is shown unfolded.
func (c toolCall) Open() bool { return len(c.Diff) > 0 || c.Failed || c.Asked != nil }

// A line is a line of a difference.
type line struct{ Sign, Text string }

// mostMessages is the maximum number of messages on a page; the latest are shown.
const mostMessages = 200

// talkOf reads the conversation from an agent's result, or the reply from a turn's result. It returns nil for other contents.
func talkOf(content json.RawMessage, left *allowance) *talk {
	var found struct {
		Conversation []llm.Message `json:"conversation"`
		Reply        *llm.Reply    `json:"reply"`
	}
	if !bytes.HasPrefix(content, []byte("{")) || json.Unmarshal(content, &found) != nil {
		return nil
	}
	t := &talk{}
	t.add(found.Conversation, left)
	if r := found.Reply; r != nil && (r.Text != "" || len(r.ToolCalls) > 0) {
		t.add([]llm.Message{r.Message()}, left)
		t.Messages[len(t.Messages)-1].of(r, left)
	}
	if len(t.Messages) == 0 {
		return nil
	}
	return t
}

// add adds messages. Only the latest are kept.
func (t *talk) add(all []llm.Message, left *allowance) {
	if n := len(all) - mostMessages; n > 0 {
		t.Earlier += n
		all = all[n:]
	}
	for _, m := range all {
		if m.Role == llm.RoleTool && answered(t.Messages, m, left) {
			continue
		}
		shown := message{Role: string(m.Role), Text: left.take(m.Text()), Media: len(m.Media())}
		for _, c := range m.ToolCalls {
			shown.Calls = append(shown.Calls, callOf(c, left))
		}
		t.Messages = append(t.Messages, shown)
	}
}

// of adds the fields of the reply to the message of a turn.
func (m *message) of(r *llm.Reply, left *allowance) {
	m.By, m.Reasoning = view.By(r), left.take(r.Reasoning)
}

func (m *message) at(run string, turn *journal.Step) { m.Turn, m.URL = turn, stepURL(run, turn.Path) }

// detach removes links to other pages.
func (t *talk) detach() {
	if t == nil {
		return
	}
	for i := range t.Messages {
		t.Messages[i].URL = ""
	}
}

// answered attaches the result in a message to its call.
func answered(talk []message, m llm.Message, left *allowance) bool {
	for i := len(talk) - 1; i >= 0; i-- {
		for j := range talk[i].Calls {
			if c := &talk[i].Calls[j]; c.id == m.CallID && !c.Done {
				c.answer(m.Text(), m.IsError, left)
				return true
			}
		}
	}
	return false
}

func (c *toolCall) answer(result string, failed bool, left *allowance) {
	c.Result, c.Failed, c.Done = left.take(text.JSON(result)), failed, true
}

// agentTalk reads the conversation of the agent at a path. It returns nil if there is none. For a running agent, it combines the
// opening with the replies of the agent's turns and the results of its tools. The result of an ended agent contains its
// conversation, possibly shortened; the agent's latest turns provide the time, the model and the cost of each message.
func agentTalk(ctx context.Context, v View, run, path string, ended *talk, left *allowance) (*talk, error) {
	opening, err := view.OpeningOf(ctx, v.Journal, run, path)
	if opening == nil {
		return ended, err
	}
	turns, tools, err := stepsOfAgent(ctx, v, run, path)
	if err != nil {
		return nil, err
	}
	t := ended
	if t == nil {
		t = &talk{Running: true}
		t.add(opening.Messages, left)
	}
	t.System, t.Tools = left.take(opening.System), opening.Tools
	if opening.Params != nil {
		for name, value := range opening.Params.All() {
			t.Params = append(t.Params, [2]string{name, fmt.Sprint(value)})
		}
	}
	if n := len(turns) - mostMessages/2; n > 0 {
		if turns = turns[n:]; t.Running {
			t.Earlier += n
		}
	}
	if t.Running {
		for i := range turns {
			reply, err := view.ReplyOf(ctx, v.Journal, run, turns[i].Path)
			if err != nil {
				return nil, err
			}
			if reply == nil {
				continue // the turn has not ended
			}
			t.add([]llm.Message{reply.Message()}, left)
			m := &t.Messages[len(t.Messages)-1]
			m.at(run, turns[i])
			m.of(reply, left)
		}
	} else {
		at := len(turns)
		for i := len(t.Messages) - 1; i >= 0 && at > 0; i-- {
			m := &t.Messages[i]
			if m.Role != string(llm.RoleAssistant) {
				continue
			}
			at--
			reply, err := view.ReplyOf(ctx, v.Journal, run, turns[at].Path)
			if err != nil {
				return nil, err
			}
			if reply == nil || len(reply.ToolCalls) != len(m.Calls) || !strings.HasPrefix(said(reply), m.Text) {
				break // a middleware changed the conversation, so the turns no longer match
			}
			m.at(run, turns[at])
			m.of(reply, left)
		}
	}
	return t, t.tools(ctx, v, run, tools, left)
}

// said returns the text of a reply as shown in a message.
func said(r *llm.Reply) string {
	m := r.Message()
	return m.Text()
}

// tools adds to calls their steps, their results if the conversation lacks them, and their approvals.
func (t *talk) tools(ctx context.Context, v View, run string, steps map[string]*journal.Step, left *allowance) error {
	asked, err := view.BriefQuestions(ctx, v.Journal, run)
	if err != nil {
		return err
	}
	for i := range t.Messages {
		m := &t.Messages[i]
		if m.Turn == nil {
			continue
		}
		for j := range m.Calls {
			c := &m.Calls[j]
			if c.Step = steps[address.ToolStep(view.Turn(*m.Turn), j+1)]; c.Step == nil {
				continue
			}
			if at := slices.IndexFunc(asked, func(q journal.Question) bool { return q.Path == c.Step.Path || address.Within(q.Path, c.Step.Path) }); at >= 0 {
				c.Asked = &asked[at]
			}
			if c.Done || !c.Step.Recorded {
				continue
			}
			outcome, err := view.OutcomeOf(ctx, v.Journal, run, c.Step.Path)
			if err != nil {
				return err
			}
			if outcome != nil {
				c.answer(outcome.Text, outcome.Failed, left)
			}
		}
	}
	return nil
}

// stepsOfAgent returns the turns of an agent in order, and its tool calls by name.
func stepsOfAgent(ctx context.Context, v View, run, path string) (turns []*journal.Step, tools map[string]*journal.Step, err error) {
	o, err := v.Journal.Outline(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	tools = map[string]*journal.Step{}
	for at, more := "", true; more; {
		l, err := o.Level(ctx, path, journal.Page{From: at, Limit: 1000})
		if err != nil {
			return nil, nil, err
		}
		for _, b := range l.Branches {
			if b.Step == nil || b.Step.Kind != "step" {
				continue
			}
			if view.IsToolCall(*b.Step) {
				tools[b.Step.Name] = b.Step
			} else if view.Turn(*b.Step) > 0 {
				turns = append(turns, b.Step)
			}
		}
		at, more = l.Next, l.Next != ""
	}
	slices.SortFunc(turns, func(a, b *journal.Step) int { return view.Turn(*a) - view.Turn(*b) })
	return turns, tools, nil
}

func callOf(c llm.ToolCall, left *allowance) toolCall {
	out := toolCall{id: c.ID, Name: c.Name, Arg: view.Argument(c)}
	var edit struct {
		Path string  `json:"path"`
		Old  *string `json:"old_string"`
		New  *string `json:"new_string"`
	}
	if json.Unmarshal(c.Input, &edit) == nil && edit.Old != nil && edit.New != nil {
		out.Input = left.take(edit.Path)
		out.Diff = difference(left.take(*edit.Old), left.take(*edit.New))
		return out
	}
	out.Input = left.take(text.JSON(string(c.Input)) + c.InputText)
	return out
}

// contextLines is the number of equal lines shown around a difference.
const contextLines = 3

// difference returns the differing lines of two texts, without long equal parts.
func difference(before, after string) (out []line) {
	all := text.Diff(strings.Split(strings.TrimSuffix(before, "\n"), "\n"), strings.Split(strings.TrimSuffix(after, "\n"), "\n"))
	for i := 0; i < len(all); {
		end := i
		for end < len(all) && all[end].Sign == ' ' {
			end++
		}
		head, tail := contextLines, contextLines
		if i == 0 {
			head = 0
		}
		if end == len(all) {
			tail = 0
		}
		if n := end - i - head - tail; n > 1 {
			out = append(plain(out, all[i:i+head]), line{"…", plural(n, "equal line")})
			i = end - tail
		}
		out = plain(out, all[i:end])
		for i = end; i < len(all) && all[i].Sign != ' '; i++ {
			out = plain(out, all[i:i+1])
		}
	}
	return out
}

func plain(out []line, edits []text.Edit) []line {
	for _, e := range edits {
		out = append(out, line{string(e.Sign), e.Line})
	}
	return out
}
