package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/stonelayer/stone/internal/protocol"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// A response is a response of the Responses protocol. It repeats the parameters of the request. Parameters that the request does
// not contain have OpenAI's default values.
type response struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	CreatedAt          int64             `json:"created_at"`
	CompletedAt        *int64            `json:"completed_at"`
	Status             string            `json:"status"`
	Error              *responseError    `json:"error"`
	IncompleteDetails  *incomplete       `json:"incomplete_details"`
	Model              string            `json:"model"`
	Output             []any             `json:"output"`
	Usage              *responseUsage    `json:"usage"`
	PreviousResponseID *string           `json:"previous_response_id"`
	Instructions       *string           `json:"instructions"`
	Tools              []any             `json:"tools"`
	ToolChoice         json.RawMessage   `json:"tool_choice"`
	Truncation         string            `json:"truncation"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	Text               responseText      `json:"text"`
	Temperature        float64           `json:"temperature"`
	TopP               float64           `json:"top_p"`
	PresencePenalty    float64           `json:"presence_penalty"`
	FrequencyPenalty   float64           `json:"frequency_penalty"`
	TopLogprobs        int               `json:"top_logprobs"`
	Reasoning          responseReasoning `json:"reasoning"`
	MaxOutputTokens    *int              `json:"max_output_tokens"`
	MaxToolCalls       *int              `json:"max_tool_calls"`
	Store              bool              `json:"store"`
	Background         bool              `json:"background"`
	ServiceTier        string            `json:"service_tier"`
	Metadata           map[string]string `json:"metadata"`
	SafetyIdentifier   *string           `json:"safety_identifier"`
	PromptCacheKey     *string           `json:"prompt_cache_key"`

	live      bool // text is streamed before it is accepted
	named     bool // the client has chosen the run's id, so it can reconnect
	encrypted bool // the client will send the reasoning back
	tools     clientNames
	recalled  map[int]string // responses whose reasoning the client sends back, by message index
}

// kept is the part of a response that is stored with its run.
type kept struct {
	*response
	Live      bool        `json:"stone_live,omitempty"`
	Named     bool        `json:"stone_named,omitempty"`
	Encrypted bool        `json:"stone_encrypted,omitempty"`
	Format    *llm.Format `json:"stone_format,omitempty"`
	clientNames
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type responseTool struct {
	Type string `json:"type"`
	function
}

type responseReasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

type responseText struct {
	Format responseFormat `json:"format"`
}

// responseFormat is a response format. The type json_schema uses the fields of SchemaFields; other types do not.
type responseFormat struct {
	Type string `json:"type"`
	*SchemaFields
}

// SchemaFields must be exported, because encoding/json does not decode an embedded pointer to an unexported type.
type SchemaFields struct {
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Schema      json.RawMessage `json:"schema"` // always null, but required by the specification
	Strict      bool            `json:"strict"`
}

type responseUsage struct {
	InputTokens  int `json:"input_tokens"`
	InputDetails struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens  int `json:"output_tokens"`
	OutputDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int     `json:"total_tokens"`
	Cost        float64 `json:"cost,omitempty"` // in USD; OpenRouter uses the same field
}

// readResponse parses a request for a response.
func readResponse(ctx context.Context, b Backend, body map[string]json.RawMessage) (req llm.Request, resp response, stream bool, err error) {
	resp = response{
		Object: "response", Status: "in_progress", Output: []any{}, Tools: []any{}, ToolChoice: json.RawMessage(`"auto"`),
		Truncation: "disabled", ParallelToolCalls: true, Temperature: 1, TopP: 1, Store: true, ServiceTier: "default", Metadata: map[string]string{},
	}
	if err = checkParameters(body, func(p Parameter) Use { return p.Responses }); err != nil {
		return req, resp, stream, err
	}
	var raw []json.RawMessage
	var text struct {
		Format struct {
			Type   string
			Strict bool
			JSONSchema
		}
	}
	var include []string
	err = Fields(body, map[string]any{
		"include": &include, "model": &resp.Model, "instructions": &resp.Instructions, "metadata": &resp.Metadata, "store": &resp.Store, "stream": &stream,
		"background": &resp.Background, "previous_response_id": &resp.PreviousResponseID, "tools": &raw, "text": &text, "temperature": &req.Params.Temperature, "top_p": &req.Params.TopP,
		"parallel_tool_calls": &req.Params.ParallelTools, "max_output_tokens": &resp.MaxOutputTokens, "reasoning": &resp.Reasoning,
		"max_tool_calls": &resp.MaxToolCalls, "safety_identifier": &resp.SafetyIdentifier, "prompt_cache_key": &resp.PromptCacheKey,
	})
	if err == nil {
		err = metadata(resp.Metadata)
	}
	var offered tools
	if err == nil {
		offered, err = readTools(raw, b.IgnoresTool)
	}
	if req.Tools = offered.offered; err == nil {
		err = choose(&req, body["tool_choice"])
	}
	if err == nil {
		req.ResponseFormat, err = Format("text", text.Format.Type, text.Format.JSONSchema)
	}
	if err != nil {
		return req, resp, stream, err
	}
	if resp.Background && !resp.Store {
		return req, resp, stream, Wrong("store", "invalid_value", "a background response must be stored, so that the client can fetch it later: leave store out")
	}
	if resp.Instructions != nil {
		req.System = *resp.Instructions
	}
	resp.Tools, resp.tools = offered.echo, offered.clientNames
	resp.echo(body, &req, text.Format.Type, text.Format.Strict)
	resp.encrypted, resp.recalled = slices.Contains(include, "reasoning.encrypted_content"), map[int]string{}
	said := dialogue{Request: &req, recalled: resp.recalled, earlier: &earlier{ctx: ctx, backend: b}}
	return req, resp, stream, said.items(body["input"])
}

// echo copies the settings of the request to the fields of the response that repeat them.
func (resp *response) echo(body map[string]json.RawMessage, req *llm.Request, kind string, strict bool) {
	resp.Text.Format.Type = "text"
	if f := req.ResponseFormat; f != nil {
		if resp.Text.Format.Type = kind; kind == "json_schema" {
			resp.Text.Format.SchemaFields = &SchemaFields{Name: f.Name, Strict: strict, Schema: json.RawMessage("null")}
		}
	}
	if req.Params.ToolChoice != "" {
		resp.ToolChoice = body["tool_choice"]
	}
	if v := req.Params.Temperature; v != nil {
		resp.Temperature = *v
	}
	if v := req.Params.TopP; v != nil {
		resp.TopP = *v
	}
	if v := req.Params.ParallelTools; v != nil {
		resp.ParallelToolCalls = *v
	}
	if v := resp.MaxOutputTokens; v != nil {
		req.MaxTokens = *v
	}
	if v := resp.Reasoning.Effort; v != nil {
		req.Params.Effort = *v
	}
	if resp.Metadata == nil {
		resp.Metadata = map[string]string{}
	}
}

func postResponse(w http.ResponseWriter, r *http.Request, b Backend) error {
	body, err := Body(r)
	if err != nil {
		return err
	}
	req, resp, streams, err := readResponse(r.Context(), b, body)
	if err != nil {
		return err
	}
	if err := Recall(r.Context(), b, &req, resp.recalled); err != nil {
		return err
	}
	var before []llm.Message
	if id := resp.PreviousResponseID; id != nil {
		if before, err = conversation(r.Context(), b, *id); err != nil {
			return err
		}
	}
	resp.named = named(r)
	m, run, err := start(r, b, resp.Model, &req, before, Start{
		ID: runID(r, "resp_"), Labels: resp.Metadata, Interactive: !resp.Background, Live: streams,
	}, &resp)
	if err != nil {
		return err
	}
	resp.ID, resp.CreatedAt = run.ID, run.Started.Unix()
	w.Header().Set("X-Request-Id", run.ID)
	switch {
	case streams:
		return resp.stream(w, r, b, m, -1)
	case resp.Background:
		return resp.now(w, r, b)
	}
	if run, err = wait(r.Context(), b, run.ID, !resp.named, func() {}); err != nil {
		return err
	}
	if run.State != journal.Done {
		return ofRun(run)
	}
	if err := resp.end(r.Context(), m, run); err != nil {
		return err
	}
	return Reply(w, resp)
}

// now replies with a stored response in its current state.
func (resp *response) now(w http.ResponseWriter, r *http.Request, b Backend) error {
	was, m, run, err := existing(r.Context(), b, resp.ID)
	if err != nil {
		return err
	}
	was.ended(r.Context(), m, run)
	return Reply(w, was)
}

// start starts the run of a request. If the request names an earlier response, its messages are appended to the conversation of
// that response. The data of the response is stored with the run; a chat has no such data.
func start(r *http.Request, b Backend, model string, req *llm.Request, before []llm.Message, s Start, resp *response) (m Model, run api.Run, err error) {
	if m, err = Find(b, model); err == nil {
		err = cmp.Or(checkSettings(req), asked(m, req))
	}
	if err != nil {
		return m, run, err
	}
	req.Messages = append(before, req.Messages...)
	s.Model, s.Live, m.Format = m.Name, s.Live && m.Live, req.ResponseFormat
	if s.Input, s.Given, err = m.Input(req); err != nil {
		return m, run, err
	}
	if resp != nil {
		resp.live = s.Live
		if s.Keep, err = json.Marshal(kept{resp, resp.live, resp.named, resp.encrypted, m.Format, resp.tools}); err != nil {
			return m, run, err
		}
	}
	// Start the run even if the client disconnects meanwhile: only a known run can be cancelled.
	run, err = b.Start(context.WithoutCancel(r.Context()), s)
	return m, run, err
}

// stored returns the response with the id if the caller may read it, in the current state of its run.
func stored(ctx context.Context, b Backend, id string) (resp response, m Model, run api.Run, err error) {
	if err = b.Needs(protocol.Read); err != nil {
		return resp, m, run, err
	}
	resp, m, run, err = existing(ctx, b, id)
	if err == nil && !resp.Store {
		err = noResponse(id)
	}
	return resp, m, run, err
}

func noResponse(id string) error {
	return &Error{Status: http.StatusNotFound, Message: "there is no response " + quote(id), Type: "invalid_request_error", Code: "not_found"}
}

// existing returns the response with this id, in the current state of its run.
func existing(ctx context.Context, b Backend, id string) (resp response, m Model, run api.Run, err error) {
	text, err := b.Kept(ctx, id)
	if err != nil {
		return resp, m, run, err
	}
	was := kept{response: &resp}
	if err = json.Unmarshal(text, &was); err != nil || resp.Object != "response" {
		return resp, m, run, noResponse(id)
	}
	resp.live, resp.named, resp.encrypted, resp.tools = was.Live, was.Named, was.Encrypted, was.clientNames
	if m, err = Find(b, resp.Model); err != nil {
		return resp, m, run, err
	}
	m.Format = was.Format
	now, stop := context.WithCancel(ctx)
	stop()
	if run, err = b.Wait(now, id); err != nil {
		return resp, m, run, err
	}
	resp.ID, resp.CreatedAt = id, run.Started.Unix()
	return resp, m, run, nil
}

func getResponse(w http.ResponseWriter, r *http.Request, b Backend) error {
	resp, m, _, err := stored(r.Context(), b, r.PathValue("id"))
	if err != nil {
		return err
	}
	query := r.URL.Query()
	if query.Get("stream") == "true" {
		after := -1
		if text := query.Get("starting_after"); text != "" {
			if after, err = strconv.Atoi(text); err != nil || after < 0 {
				return Wrong("starting_after", "invalid_value", "starting_after is %s: want the sequence_number of an event", quote(text))
			}
		}
		return resp.stream(w, r, b, m, after)
	}
	return resp.now(w, r, b)
}

func cancelResponse(w http.ResponseWriter, r *http.Request, b Backend) error {
	id := r.PathValue("id")
	resp, _, run, err := stored(r.Context(), b, id)
	if err != nil {
		return err
	}
	if !resp.Background && !resp.named {
		return Wrong("", "invalid_request", "the response %s is not in the background: close its connection to cancel it", quote(id))
	}
	if !run.Over() {
		if err := b.Cancel(r.Context(), id); err != nil {
			return err
		}
	}
	return resp.now(w, r, b)
}

func removeResponse(w http.ResponseWriter, r *http.Request, b Backend) error {
	id := r.PathValue("id")
	if _, _, _, err := stored(r.Context(), b, id); err != nil {
		return err
	}
	if err := b.Remove(r.Context(), id); err != nil {
		return err
	}
	return Reply(w, map[string]any{"id": id, "object": "response", "deleted": true})
}

// ended sets the result of a run that has ended. If the answer cannot be decoded, the result is a failure.
func (resp *response) ended(ctx context.Context, m Model, run api.Run) {
	if err := resp.end(ctx, m, run); err != nil {
		resp.Status, resp.Error = "failed", unread(err).failure()
	}
}

// end sets the result of a run: its usage, and either its answer or its failure.
func (resp *response) end(ctx context.Context, m Model, run api.Run) error {
	if !run.Over() || run.State == journal.Refused {
		return nil
	}
	u := &responseUsage{InputTokens: run.Usage.InputTokens, OutputTokens: run.Usage.OutputTokens, TotalTokens: run.Usage.Tokens(), Cost: run.Usage.USD}
	u.InputDetails.CachedTokens = run.Usage.CacheReadTokens
	resp.Usage = u
	switch {
	case run.State == journal.Done:
		answer, err := m.Answer(ctx, run)
		if err != nil {
			return err
		}
		u.OutputDetails.ReasoningTokens = min(answer.Usage.ReasoningTokens, u.OutputTokens)
		resp.Status = "completed"
		resp.Output = resp.outputOf(answer)
		if why := cutOff(answer); why != "" {
			resp.Status, resp.IncompleteDetails = "incomplete", &incomplete{why}
		} else {
			at := run.Ended.Unix()
			resp.CompletedAt = &at
		}
	case run.State == journal.Canceled && !retracted(run):
		resp.Status = "cancelled"
	default:
		resp.Status, resp.Error = "failed", ofRun(run).failure()
	}
	return nil
}

// cutOff returns the reason why an answer is incomplete, or "" if it is complete.
func cutOff(r *llm.Reply) string {
	switch r.StopReason {
	case "max_tokens", "max_output_tokens", "length", "MAX_TOKENS":
		return "max_output_tokens"
	case "content_filter", "SAFETY":
		return "content_filter"
	}
	return ""
}
