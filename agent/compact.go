package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/asked"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/llm"
)

// CompactConfig configures Compact. The zero value leaves out the middle of a conversation that exceeds three quarters of the
// model's window.
type CompactConfig struct {
	// MaxTokens limits the size of a turn's request. It is lowered to three quarters of Context.Window, which is also the
	// default. If the window is unknown, the default is 100,000 until a server rejects a request as too long; from then on, the
	// length of that request counts as the window. The last reply reports the length of its request. The length of later messages
	// is estimated: four bytes of text count as one token, and a picture as at most 4,096.
	MaxTokens int
	// Keep is the number of latest turns that stay unchanged if they fit; 0 means 4. The latest turn always stays unchanged.
	Keep int
	// Model summarizes the messages that are left out. If Model is nil, they are replaced by a note that states their number.
	Model llm.Model
	// Instruction is the system prompt of Model; "" means the package's default.
	Instruction string
}

const (
	defaultCompactTokens = 100_000
	defaultCompactKeep   = 4
	summaryTokens        = 2048 // the usual length of a summary
	compactInstruction   = "You are given the middle of a conversation between a user, an assistant and its tools. " +
		"Summarise it for the assistant, who will continue and sees nothing else of this part: what was found out, what was done, " +
		"with names, paths and values, what failed and why, and what is still to be done. Write the summary and nothing else."
)

// Compact returns a middleware that shortens the agent's conversation before it exceeds the model's window. It keeps the message
// that the agent answers, and the last turns with the messages to which they reply. A single message replaces all other messages.
// A tool call is never separated from its result. The agent continues with the shorter conversation, which also becomes the
// conversation in its node. The handles of long results are kept. If a server rejects a request as too long, or the window cuts
// off an answer, the conversation is shortened (to half, after a rejection) and the model is called once more. Put this
// middleware innermost, after all middlewares that add messages.
func Compact(cfg CompactConfig) Middleware {
	if cfg.Keep <= 0 {
		cfg.Keep = defaultCompactKeep
	}
	if cfg.Instruction == "" {
		cfg.Instruction = compactInstruction
	}
	return Middleware{Name: "compact", Wrap: cfg.wrap, Bound: func(ctx context.Context) budget.Bound {
		return llm.Most(ctx, cfg.Model, &llm.Request{}).Times(2) // one summary before a request, one after the request was too long
	}}
}

// wrap shortens a conversation before it becomes too long, and after a server has rejected it as too long.
func (cfg CompactConfig) wrap(ctx context.Context, c Context, next Handler) (Context, error) {
	shorter, _, err := cfg.shorten(ctx, c, cfg.bound(c.Window()))
	if err != nil {
		return c, err
	}
	after, err := next(ctx, shorter)
	if spent, _ := budget.CostOf(err); !errors.Is(err, reasons.Overflow) || spent.OutputTokens > 0 { // only a rejection costs nothing
		return after, err
	}
	// Servers do not say by how much a request was too long. Half the length is safe unless the estimate is far off.
	length, _ := shorter.request().Tokens()
	again, left, failed := cfg.shorten(ctx, shorter, length/2)
	if failed != nil {
		return c, failed
	}
	if !left {
		return after, err
	}
	return next(ctx, again)
}

// shorten leaves out the middle of a conversation that is longer than most tokens, if possible.
func (cfg CompactConfig) shorten(ctx context.Context, c Context, most int) (shorter Context, left bool, err error) {
	cfg.MaxTokens = most
	q := c.asked()
	from, to := cfg.middle(c, q)
	if from == to {
		return c, false, nil
	}
	middle, question := c.Messages[from:to], []llm.Message(nil)
	if from <= q && q < to {
		question = c.Messages[q : q+1]
		middle = slices.Concat(c.Messages[from:q], c.Messages[q+1:to])
	}
	summary, err := cfg.summarise(ctx, c, middle)
	if err != nil {
		return c, false, err
	}
	note, err := leftOut(summary.Text, handles(middle))
	if err != nil {
		return c, false, err
	}
	c.Messages = slices.Concat(c.Messages[:from:from], []llm.Message{note}, question, c.Messages[to:])
	c.prefix = nil
	return c, true, nil
}

// asked returns the index of the message that the agent answers: the user's last message in the agent's opening, or the first
// message if the opening is unknown.
func (c *Context) asked() int {
	for i := len(c.Messages) - 1; i > 0 && c.question != nil; i-- {
		if m := &c.Messages[i]; m.Role == llm.RoleUser && m.Text() == c.question.Text() && len(m.Media()) == len(c.question.Media()) {
			return i
		}
	}
	return 0
}

// leftOut returns the message that replaces the messages left out. It contains the handles with which the model can still read
// their kept results.
func leftOut(text string, of []handle) (llm.Message, error) {
	if len(of) > 0 {
		text += "\n[Results that can still be read with " + readName + ":"
		for _, h := range of {
			text += fmt.Sprintf("\n%s, %s, %d bytes", h.Handle, h.Tool, h.Bytes)
		}
		text += "]"
	}
	return noted(llm.User(text), of...)
}

// bound returns the maximum length of a conversation for a window, in tokens.
func (cfg CompactConfig) bound(window int) int {
	switch most := window / 4 * 3; {
	case most > 0 && (cfg.MaxTokens <= 0 || cfg.MaxTokens > most):
		return most
	case cfg.MaxTokens > 0:
		return cfg.MaxTokens
	}
	return defaultCompactTokens
}

// middle returns the range [from, to) of messages to leave out. The range is empty if the conversation is short enough, or if
// nothing can be left out. It never includes the message at index q. The first message can be left out if it belongs to an older
// conversation.
func (cfg CompactConfig) middle(c Context, q int) (from, to int) {
	length, _ := c.request().Tokens()
	room := cfg.MaxTokens - length
	if room >= 0 {
		return 0, 0
	}
	// Each turn starts with a message of the assistant, so its calls and their results stay together. If necessary, more of the
	// last turns are left out to free more space.
	var turns []int
	for i, m := range c.Messages {
		if m.Role == llm.RoleAssistant {
			turns = append(turns, i)
		}
	}
	reserve := min(summaryTokens, cfg.MaxTokens/4) // the space for the replacement message
	if from = min(1, len(c.Messages)); q > 0 {
		from = 0
	}
	to = from
	freed, share := 0, c.share()
	for keep := min(cfg.Keep, len(turns)); keep >= 1; keep-- {
		first := turns[len(turns)-keep]
		for first > from && c.Messages[first-1].Role == llm.RoleUser {
			first-- // the turn replies to this message
		}
		for ; to < first; to++ {
			if to == q {
				continue
			}
			n := c.Messages[to].Tokens()
			if c.prefix != nil && to < c.prefix.Messages {
				n = int(float64(n) * share)
			}
			freed += n
		}
		if room+freed >= reserve {
			break
		}
	}
	if freed <= reserve { // the replacement would be at least as long
		return 0, 0
	}
	return from, to
}

// share returns the number of tokens that the last reply reported for its request, divided by the estimate for the same request.
func (c Context) share() float64 {
	if c.prefix == nil || c.prefix.Messages > len(c.Messages) {
		return 1
	}
	guess := c.request()
	guess.Messages, guess.Prefix = c.Messages[:c.prefix.Messages], nil
	estimate, _ := guess.Tokens()
	return float64(c.prefix.Tokens) / float64(estimate)
}

// summary is the record of a compaction.
type summary struct {
	Text  string       `json:"text"`
	Usage budget.Usage `json:"usage,omitzero"`
}

func (cfg CompactConfig) summarise(ctx context.Context, c Context, middle []llm.Message) (summary, error) {
	if cfg.Model == nil {
		return summary{Text: fmt.Sprintf("[%d messages of the conversation are left out here.]", len(middle))}, nil
	}
	step := "compact-" + strconv.Itoa(c.Turn)
	req := &llm.Request{
		System:   cfg.Instruction,
		Messages: []llm.Message{llm.User(transcript(middle))},
	}
	p, err := pay(ctx, step, cfg.Model, req)
	if err != nil {
		return summary{}, err
	}
	s, err := stone.Step(p.Context(ctx), step, struct{}{}, func(ctx context.Context, _ struct{}) (summary, error) {
		return cfg.ask(ctx, req, len(middle), &p)
	})
	c.uses(p.end(s.Usage, err))
	return s, err
}

// ask asks the model for a summary and returns it.
func (cfg CompactConfig) ask(ctx context.Context, req *llm.Request, messages int, p *payment) (summary, error) {
	if err := asked.Before(ctx, cfg.Model, req); err != nil {
		return summary{}, err
	}
	reply, err := p.ask(ctx, cfg.Model, req, func(*llm.Delta) {})
	if err == nil && strings.TrimSpace(reply.Text) == "" {
		err = &llm.EmptyResponseError{StopReason: reply.StopReason, RequestID: reply.RequestID}
	}
	if err != nil {
		return summary{}, p.failed(ctx, fmt.Errorf("compacting the conversation: %w", err))
	}
	text := fmt.Sprintf("[%d messages of the conversation are left out here. A summary of them:]\n%s", messages, reply.Text)
	return summary{Text: utf8Only(text), Usage: p.spent}, nil
}

// transcript returns messages as plain text, because no provider accepts tool calls outside their conversation.
func transcript(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		if text := m.Text(); text != "" {
			fmt.Fprintf(&b, "%s: %s\n", m.Role, text)
		}
		for _, media := range m.Media() {
			fmt.Fprintf(&b, "%s shows [%s]\n", m.Role, media)
		}
		for _, call := range m.ToolCalls {
			input := call.Input
			if input == nil {
				input = json.RawMessage(call.InputText)
			}
			fmt.Fprintf(&b, "%s calls %s %s\n", m.Role, call.Name, input)
		}
	}
	return b.String()
}
