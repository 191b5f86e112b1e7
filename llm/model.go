package llm

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm/internal/rules"
)

// Model answers requests.
//
// Stream sends the request when the returned sequence is ranged over, and yields the deltas in order, on the ranging goroutine.
// The last pair is either a Done delta with the complete Reply and no error, or an error with a delta whose Reply contains
// everything received before the error. Breaking out of the range, or the end of ctx, ends the request and frees its resources.
// The sequence can be ranged over only once.
//
// A Model must be safe for concurrent use. It must not modify the request, and the caller must not modify the request before the
// sequence ends.
type Model interface {
	Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// Checker is a Model that can check its configuration. Check does not use the network. A
// model that fails its check returns the same error on its first use.
type Checker interface {
	Check() error
}

// Informer is a Model that can describe itself.
type Informer interface {
	Info() Info
}

// Info names a model for events and traces.
type Info struct {
	Provider string // the protocol: "openai", "anthropic", "gemini"
	Model    string // the default model of requests
	Endpoint string // the URL without user, query and fragment
	// Mode is the origin of answers: Live, Mock or Replay. It is empty if unknown.
	Mode string
	// Price is the price of Model; nil if it is unknown. See Priced.
	Price *budget.Price
	// Pays means that the model itself draws on the account in its context, so no caller may charge the answers again. See
	// call.Model.
	Pays bool
}

// The modes of an answer.
const (
	Live   = "live"   // the answer was produced for this request
	Mock   = "mock"   // the answer was written in advance
	Replay = "replay" // the answer was recorded earlier
)

// Request is a question to a model. Only Messages is required.
type Request struct {
	// Model overrides the name with which the Model was made.
	Model string `json:"model,omitempty"`
	// System is the instruction before the conversation.
	System   string    `json:"system,omitempty"`
	Messages []Message `json:"messages"`
	// MaxTokens limits the length of the answer. Zero means the Model's own limit.
	MaxTokens      int     `json:"max_tokens,omitempty"`
	Tools          []Tool  `json:"tools,omitempty"`
	ResponseFormat *Format `json:"response_format,omitempty"`
	Params         Params  `json:"params,omitzero"`
	// Cache announces that a later request will start like this one: with the same tools, system text and messages. For providers
	// that cache only marked prompts, the prompt is marked; other providers cache automatically. Cache changes the cost of an
	// answer but not the answer itself, so it is not part of the JSON.
	Cache bool `json:"-"`
	// Conversation names the conversation that the request continues, if Cache is set: requests with the same name start with the
	// same messages. A server that finds cached prompts by a key receives a hash of the name. Conversation is not part of the
	// JSON.
	Conversation string `json:"-"`
	// Prefix contains the token count that an earlier reply reported for the start of this request, which improves estimates.
	// Prefix is not part of the JSON.
	Prefix *Prefix `json:"-"`
}

// Prefix describes the start of a request whose number of tokens is known: the system text, the tools and the first messages.
type Prefix struct {
	Messages, Tokens int
}

// Format requires a JSON answer that fits a schema. A provider enforces the part of the schema that it supports and may return
// values in another form. schema.Schema.Restore converts such values, and Validate checks them. Agents and calls do both.
type Format struct {
	Name   string          `json:"name,omitempty"` // default "answer"
	Schema json.RawMessage `json:"schema"`
}

// Reply is a model's complete answer.
type Reply struct {
	Text      string     `json:"text"`
	Reasoning string     `json:"reasoning,omitempty"` // readable thinking, never part of Text
	Refusal   string     `json:"refusal,omitempty"`   // a refusal that is separate from the text
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	Media     []*Media   `json:"media,omitempty"` // pictures and sounds in the answer
	// StopReason is the provider's own stop reason, or "" if the provider did not send one.
	StopReason string `json:"stop_reason,omitempty"`
	Usage      Usage  `json:"usage"`
	Model      string `json:"model,omitempty"` // the model that answered
	// Sources are the citations of the answer, in order.
	Sources   []Source `json:"sources,omitempty"`
	ID        string   `json:"id,omitempty"`
	RequestID string   `json:"request_id,omitempty"` // from the response's headers
	// Metadata is sent back to the provider in the next turn.
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// Spent is the usage of the attempt that ended with this reply, if the model itself measures it. Nil leaves this to the
	// consumer's Meter.
	Spent *budget.Usage `json:"-"`
}

// Source is a source cited in an answer. Fields that the provider does not report are empty.
type Source struct {
	URL   string `json:"url,omitempty"`
	Title string `json:"title,omitempty"`
	File  string `json:"file,omitempty"`  // the ID of a file at the provider
	Quote string `json:"quote,omitempty"` // the cited passage of the source
	Claim string `json:"claim,omitempty"` // the passage of the answer that the source supports
}

// Message returns the reply as the turn that is appended to the conversation.
func (r *Reply) Message() Message {
	m := Message{Role: RoleAssistant, ToolCalls: r.ToolCalls, Metadata: r.Metadata}
	if text := r.Text; text != "" {
		m.Content = []Part{{Text: text}}
	} else if r.Refusal != "" {
		m.Content = []Part{{Text: r.Refusal}}
	}
	for _, media := range r.Media {
		m.Content = append(m.Content, Part{Media: media})
	}
	return m
}

// Deltas returns the deltas of a complete answer, without Start and Done. Models that do
// not stream yield them.
func (r *Reply) Deltas() []Delta {
	var out []Delta
	add := func(kind Kind, text string) {
		if text != "" {
			out = append(out, Delta{Kind: kind, Text: text})
		}
	}
	add(Reasoning, r.Reasoning)
	add(Text, r.Text)
	add(Refusal, r.Refusal)
	for i, call := range r.ToolCalls {
		out = append(out, Delta{Kind: ToolCallStart, Index: i, Call: &ToolCall{ID: call.ID, Name: call.Name}})
		if input := string(call.Input) + call.InputText; input != "" {
			out = append(out, Delta{Kind: ToolInput, Index: i, Text: input})
		}
	}
	return out
}

// CheckContent returns an *EmptyResponseError if the reply has no text, media, tool call or refusal. White space does not count
// as text.
func (r *Reply) CheckContent() error {
	if strings.TrimSpace(r.Text) != "" || len(r.ToolCalls)+len(r.Media) > 0 || r.Refused() {
		return nil
	}
	return &EmptyResponseError{StopReason: r.StopReason, RequestID: r.RequestID}
}

// Refused reports whether the model refused to answer, or a provider filter blocked the answer. A refusal can follow
// partial text. A reply with a tool call that can run is not a refusal.
func (r *Reply) Refused() bool {
	if slices.ContainsFunc(r.ToolCalls, func(c ToolCall) bool { return c.Input != nil }) {
		return false
	}
	return rules.EndingOf(r.StopReason) == rules.Refused || r.Refusal != "" && r.Text == ""
}

// Cut reports whether something other than the model, such as a token limit, ended the answer, so that its text is not complete.
// Unknown stop reasons count as such an end. For filters, see Refused.
func (r *Reply) Cut() bool { return rules.EndingOf(r.StopReason) == rules.Cut }

// Usage contains the numbers of tokens that a provider reported. InputTokens and OutputTokens are nil if they were not reported.
// InputTokens includes tokens read from or written to a cache, for every provider. OutputTokens includes the reasoning, unless
// ReasoningApart is set.
type Usage struct {
	InputTokens       *int `json:"input_tokens"`
	OutputTokens      *int `json:"output_tokens"`
	CachedInputTokens int  `json:"cached_input_tokens,omitempty"` // read from a cache; included in InputTokens
	CacheWriteTokens  int  `json:"cache_write_tokens,omitempty"`  // written to a cache; included in InputTokens
	CacheHourTokens   int  `json:"cache_hour_tokens,omitempty"`   // kept for an hour, at another price; included in CacheWriteTokens
	ReasoningTokens   int  `json:"reasoning_tokens,omitempty"`
	Searches          int  `json:"searches,omitempty"` // the number of web searches by the provider
	// ReasoningApart means that OutputTokens does not include the reasoning, which is billed too.
	ReasoningApart bool `json:"reasoning_apart,omitempty"`
	// Vendor is the name of the provider's own field from which the numbers were taken, or "" for the standard field.
	Vendor string `json:"vendor,omitempty"`
	// Raw is the provider's usage object, verbatim.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Add returns the sum of two usages. Raw and Vendor come from v if v has them.
func (u Usage) Add(v Usage) Usage {
	u.InputTokens = addKnown(u.InputTokens, v.InputTokens)
	u.OutputTokens = addKnown(u.OutputTokens, v.OutputTokens)
	u.CachedInputTokens += v.CachedInputTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.CacheHourTokens += v.CacheHourTokens
	u.ReasoningTokens += v.ReasoningTokens
	u.Searches += v.Searches
	u.ReasoningApart = u.ReasoningApart || v.ReasoningApart
	if v.Raw != nil {
		u.Raw = v.Raw
	}
	if v.Vendor != "" {
		u.Vendor = v.Vendor
	}
	return u
}

func addKnown(a, b *int) *int {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	sum := *a + *b
	return &sum
}

// Kind is the kind of a delta.
type Kind uint8

// The kinds of deltas.
const (
	// Start means that the provider has started to answer. Reply contains the request ID.
	Start Kind = iota + 1
	// With Text, Reasoning and Refusal, Delta.Text is the next piece.
	Text
	Reasoning
	Refusal
	// ToolCallStart means that the model starts call number Index. Call contains its ID and name.
	ToolCallStart
	// With ToolInput, Text is the next piece of the arguments of call number Index.
	ToolInput
	// Progress is sent at regular intervals. It means that the request is still running, or is waiting for a Limiter for the
	// reason in Text.
	Progress
	// Restart means that the attempt failed with Err and will be retried after Wait. The earlier deltas are void; Reply contains
	// them, if known.
	Restart
	// Done is the last delta of a stream. Reply is the complete answer.
	Done
)

// ProgressInterval is the time between two Progress deltas, unless the model's configuration sets another.
const ProgressInterval = 5 * time.Second

// Delta is a piece of a stream. Kind determines which fields are set.
type Delta struct {
	Kind    Kind
	Index   int
	Text    string
	Call    *ToolCall
	Reply   *Reply // with Start, Restart and Done, and together with an error
	Err     error
	Wait    time.Duration // with Restart
	Elapsed time.Duration // with Progress: the time since the request started
}

var errNotDone = errors.New("llm: the model's stream ended without a Done delta; check the Model with stonetest.TestModel")

// Collect sends the request and returns the complete answer. After an error, the reply contains everything that was received
// before the error. The reply is never nil.
func Collect(ctx context.Context, m Model, req *Request) (*Reply, error) {
	reply := &Reply{}
	for d, err := range m.Stream(ctx, req) {
		if d.Reply != nil {
			reply = d.Reply
		}
		if err != nil {
			return reply, err
		}
		if d.Kind == Done {
			return reply, nil
		}
	}
	return reply, errNotDone
}
