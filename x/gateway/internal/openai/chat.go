package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// A chatCall is a tool call in a chat.
type chatCall struct {
	Index    *int          `json:"index,omitempty"` // set in streams
	ID       string        `json:"id"`
	Type     string        `json:"type"`
	Function *chatFunction `json:"function,omitempty"`
	Custom   *chatCustom   `json:"custom,omitempty"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatCustom struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// A chatAnswer is a message from the model, or a delta of one.
type chatAnswer struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content"`
	Reasoning string     `json:"reasoning_content,omitempty"` // this field is used by many servers and clients
	Refusal   *string    `json:"refusal"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
}

type chatChoice struct {
	Index        int         `json:"index"`
	Message      *chatAnswer `json:"message,omitempty"`
	Delta        *chatAnswer `json:"delta,omitempty"`
	Logprobs     any         `json:"logprobs"`
	FinishReason *string     `json:"finish_reason"`
}

type chatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *chatUsage   `json:"usage,omitempty"`
}

type chatUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	PromptDetails    struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Cost float64 `json:"cost,omitempty"` // in USD, in the same field as OpenRouter's
}

// chatRequest contains the fields of a chat request except its messages.
type chatRequest struct {
	model    string
	stream   bool
	usage    bool // send the usage in the last chunk of the stream
	metadata map[string]string
	custom   []string // names of the request's tools with type custom
	req      llm.Request
}

func readChat(b Backend, body map[string]json.RawMessage) (c chatRequest, err error) {
	if err = checkParameters(body, func(p Parameter) Use { return p.Chat }); err != nil {
		return c, err
	}
	var raw []json.RawMessage
	var form struct {
		Type       string
		JSONSchema JSONSchema `json:"json_schema"`
	}
	var options struct {
		IncludeUsage bool `json:"include_usage"`
	}
	var stop json.RawMessage
	var effort *string
	var older, most *int
	p := &c.req.Params
	err = Fields(body, map[string]any{
		"model": &c.model, "stream": &c.stream, "stream_options": &options, "metadata": &c.metadata, "tools": &raw, "response_format": &form,
		"temperature": &p.Temperature, "top_p": &p.TopP, "seed": &p.Seed, "stop": &stop, "parallel_tool_calls": &p.ParallelTools,
		"reasoning_effort": &effort, "max_tokens": &older, "max_completion_tokens": &most,
	})
	if err == nil {
		err = metadata(c.metadata)
	}
	var offered tools
	if err == nil {
		offered, err = readTools(raw, b.IgnoresTool)
	}
	c.custom = offered.Custom
	if c.req.Tools = offered.offered; err == nil {
		err = choose(&c.req, body["tool_choice"])
	}
	if err == nil {
		c.req.ResponseFormat, err = Format("response_format", form.Type, form.JSONSchema)
	}
	if err == nil {
		p.Stop, err = stops(stop)
	}
	if err != nil {
		return c, err
	}
	c.usage = options.IncludeUsage
	if effort != nil {
		p.Effort = *effort
	}
	if most = cmp.Or(most, older); most != nil {
		c.req.MaxTokens = *most
	}
	return c, dialogue{Request: &c.req}.messages(body["messages"])
}

// stops parses stop sequences, which are a string or a list of strings.
func stops(raw json.RawMessage) (list []string, err error) {
	var one *string
	if len(raw) == 0 {
		return nil, nil
	}
	if json.Unmarshal(raw, &one) == nil {
		if one == nil {
			return nil, nil
		}
		return []string{*one}, nil
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, Wrong("stop", "invalid_type", "stop is neither a text nor a list of texts: %v", err)
	}
	return list, nil
}

func postChat(w http.ResponseWriter, r *http.Request, b Backend) error {
	body, err := Body(r)
	if err != nil {
		return err
	}
	c, err := readChat(b, body)
	if err != nil {
		return err
	}
	t, err := Ask(w, r, b, "chatcmpl-", c.model, &c.req, Start{Labels: c.metadata, Live: c.stream})
	if err != nil {
		return err
	}
	if c.stream {
		c.write(w, t)
		return nil
	}
	answer, err := t.Answer(func() {})
	if err != nil {
		return err
	}
	why := finished(answer)
	out := c.completion(t.Run, "chat.completion")
	out.Choices = []chatChoice{{Message: c.answerOf(answer), FinishReason: &why}}
	out.Usage = chatUsageOf(t.Run, answer)
	return Reply(w, out)
}

func (c *chatRequest) completion(run api.Run, object string) chatCompletion {
	return chatCompletion{ID: run.ID, Object: object, Created: run.Started.Unix(), Model: c.model, Choices: []chatChoice{}}
}

func chatUsageOf(run api.Run, r *llm.Reply) *chatUsage {
	u := &chatUsage{PromptTokens: run.Usage.InputTokens, CompletionTokens: run.Usage.OutputTokens, TotalTokens: run.Usage.Tokens(), Cost: run.Usage.USD}
	u.PromptDetails.CachedTokens = run.Usage.CacheReadTokens
	u.CompletionDetails.ReasoningTokens = min(r.Usage.ReasoningTokens, u.CompletionTokens)
	return u
}

func (c *chatRequest) answerOf(r *llm.Reply) *chatAnswer {
	a := &chatAnswer{Role: "assistant", Reasoning: r.Reasoning}
	if r.Text != "" || len(r.ToolCalls) == 0 && r.Refusal == "" {
		a.Content = &r.Text
	}
	if r.Refusal != "" {
		a.Refusal = &r.Refusal
	}
	for _, call := range r.ToolCalls {
		out := chatCall{ID: call.ID, Type: "function"}
		if slices.Contains(c.custom, call.Name) {
			out.Type, out.Custom = "custom", &chatCustom{call.Name, textOfCall(call)}
		} else {
			out.Function = &chatFunction{call.Name, string(call.Input) + call.InputText}
		}
		a.ToolCalls = append(a.ToolCalls, out)
	}
	return a
}

// write streams the answer of a chat. It sends a chunk with the role at once. The text follows in one chunk when the run is done
// or, for a live model, in pieces as it is written.
func (c *chatRequest) write(w http.ResponseWriter, t *Turn) {
	s := NewStream(w)
	chunk := func(choices ...chatChoice) chatCompletion {
		out := c.completion(t.Run, "chat.completion.chunk")
		out.Choices = append(out.Choices, choices...)
		return out
	}
	empty := ""
	s.Send("", chunk(chatChoice{Delta: &chatAnswer{Role: "assistant", Content: &empty}}))
	t.Speak(s.beat, func(more string) { s.Send("", chunk(chatChoice{Delta: &chatAnswer{Content: &more}})) })
	answer, err := t.Answer(s.beat)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			s.Send("", map[string]any{"error": e})
		}
		return
	}
	delta := c.answerOf(answer)
	if delta.Role = ""; t.Said != "" {
		delta.Content = new(answer.Text[len(t.Said):])
	}
	for i := range delta.ToolCalls {
		delta.ToolCalls[i].Index = &i
	}
	s.Send("", chunk(chatChoice{Delta: delta}))
	why := finished(answer)
	s.Send("", chunk(chatChoice{Delta: &chatAnswer{}, FinishReason: &why}))
	if c.usage {
		last := chunk()
		last.Usage = chatUsageOf(t.Run, answer)
		s.Send("", last)
	}
	s.write("data: [DONE]\n\n")
}
