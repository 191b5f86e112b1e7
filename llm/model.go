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

// A Model answers requests with a language model.
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
	Provider string // name of the protocol: "openai", "anthropic" or "gemini"
	Model    string // model for requests that do not name one
	Endpoint string // URL of the server, without user, query and fragment
	// Mode says where answers come from: Live, Mock or Replay. It is empty if unknown.
	Mode string
	// Price is the price of Model; nil if it is unknown. See Priced.
	Price *budget.Price
	// Pays means that the model itself draws on the account in its context, so no caller may charge the answers again. See
	// call.Model.
	Pays bool
}

// Values of Info.Mode.
const (
	Live   = "live"   // the model writes each answer when it is requested
	Mock   = "mock"   // answers were written in advance
	Replay = "replay" // answers were recorded earlier
)

// Request is a question to a model. Only Messages is required.
type Request struct {
	// Model is the name of the model. Empty means the name in the Model's configuration.
	Model string `json:"model,omitempty"`
	// System contains the instructions that precede the conversation.
	System   string    `json:"system,omitempty"`
	Messages []Message `json:"messages"`
	// MaxTokens is the maximum length of the answer in tokens. Zero means the limit in the Model's configuration.
	MaxTokens      int     `json:"max_tokens,omitempty"`
	Tools          []Tool  `json:"tools,omitempty"`
	ResponseFormat *Format `json:"response_format,omitempty"`
	Params         Params  `json:"params,omitzero"`
	// Cache announces that a later request will start with the same tools, system text and messages as this one. If the provider
	// caches only marked prompts, the prompt is marked; other providers cache automatically. Cache changes the cost of an answer
	// but not the answer itself, so it is not part of the JSON.
	Cache bool `json:"-"`
	// Conversation names the conversation that the request continues, if Cache is set: requests with the same name start with the
	// same messages. A server that finds cached prompts by a key receives a hash of the name. Conversation is not part of the
	// JSON.
	Conversation string `json:"-"`
	// Prefix contains the number of tokens that an earlier reply reported for the start of this request. It makes estimates more
	// accurate. Prefix is not part of the JSON.
	Prefix *Prefix `json:"-"`
}

// Prefix describes the start of a request: the system text, the tools and the first messages. Its number of tokens is known.
type Prefix struct {
	Messages, Tokens int
}

// Format requires a JSON answer that matches a schema. A provider enforces the part of the schema that it supports, and may return
// values in a different form. The method Restore of schema.Schema converts these values, and Validate checks them. Agents and calls
// do both.
type Format struct {
	Name   string          `json:"name,omitempty"` // default "answer"
	Schema json.RawMessage `json:"schema"`
}

// Reply is a model's complete answer.
type Reply struct {
	Text      string     `json:"text"`
	Reasoning string     `json:"reasoning,omitempty"` // readable part of the model's thinking; never part of Text
	Refusal   string     `json:"refusal,omitempty"`   // refusal that the provider sent separately from the text
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
	// Metadata contains data to send back to the provider in the next turn.
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// Spent is the usage of the attempt that ended with this reply. It is nil unless the model measures its usage itself; the
	// consumer's Meter then computes the usage.
	Spent *budget.Usage `json:"-"`
}

// Source is a source cited in an answer. Fields are empty if the provider does not report them.
type Source struct {
	URL   string `json:"url,omitempty"`
	Title string `json:"title,omitempty"`
	File  string `json:"file,omitempty"`  // provider's ID of the cited file
	Quote string `json:"quote,omitempty"` // cited passage of the source
	Claim string `json:"claim,omitempty"` // passage of the answer that the source supports
}

// Message returns the assistant message to append to the conversation for this reply.
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

// Deltas returns the deltas of the reply's content, without Start and Done. A model that cannot stream yields them all at once.
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

// Cut reports whether the answer is incomplete because something other than the model ended it, such as a token limit. It also
// returns true for unknown stop reasons. For filters, see Refused.
func (r *Reply) Cut() bool { return rules.EndingOf(r.StopReason) == rules.Cut }

// Usage contains the numbers of tokens that a provider reported. InputTokens and OutputTokens are nil if they were not reported.
// For every provider, InputTokens includes tokens read from a cache or written to it. OutputTokens includes the reasoning, unless
// ReasoningApart is set.
type Usage struct {
	InputTokens       *int `json:"input_tokens"`
	OutputTokens      *int `json:"output_tokens"`
	CachedInputTokens int  `json:"cached_input_tokens,omitempty"` // tokens read from a cache; included in InputTokens
	CacheWriteTokens  int  `json:"cache_write_tokens,omitempty"`  // tokens written to a cache; included in InputTokens
	CacheHourTokens   int  `json:"cache_hour_tokens,omitempty"`   // cached for an hour, at another price; part of CacheWriteTokens
	ReasoningTokens   int  `json:"reasoning_tokens,omitempty"`
	Searches          int  `json:"searches,omitempty"` // number of web searches by the provider
	// ReasoningApart means that OutputTokens does not include ReasoningTokens, which are billed in addition.
	ReasoningApart bool `json:"reasoning_apart,omitempty"`
	// Vendor is the name of the nonstandard field that contained the numbers, or "" if the standard field did.
	Vendor string `json:"vendor,omitempty"`
	// Raw is the provider's usage object, verbatim.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Add returns the sum of u and v. Raw and Vendor are each taken from v if set there, and otherwise from u.
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
	// Start means that the provider has started to answer. Reply contains the provider's ID of the request.
	Start Kind = iota + 1
	// With Text, Reasoning and Refusal, Delta.Text is the next piece.
	Text
	Reasoning
	Refusal
	// ToolCallStart means that the model starts call number Index. Call contains its ID and name.
	ToolCallStart
	// With ToolInput, Text is the next piece of the arguments of call number Index.
	ToolInput
	// Progress is sent at regular intervals while the request is running or, if Text is not empty, waiting for the reason in Text,
	// such as a Limiter.
	Progress
	// Restart means that the attempt failed with Err and will be retried after Wait. All earlier deltas are void. Reply contains
	// the partial answer that they formed, if known.
	Restart
	// Done is the last delta of a stream. Reply is the complete answer.
	Done
)

// ProgressInterval is the default interval between two Progress deltas. A model's configuration can set a different one.
const ProgressInterval = 5 * time.Second

// Delta is one element of a stream. Kind determines which fields are set.
type Delta struct {
	Kind    Kind
	Index   int
	Text    string
	Call    *ToolCall
	Reply   *Reply // set with Start, Restart and Done, and together with an error
	Err     error
	Wait    time.Duration // with Restart
	Elapsed time.Duration // with Progress: time since the request started
}

var errNotDone = errors.New("llm: the model's stream ended without a Done delta; check the Model with stonetest.TestModel")

// Collect sends the request and returns the complete reply. If the request fails, Collect returns the error and a reply that
// contains everything received before the error. The reply is never nil.
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
