package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// chunk contains the fields of an answer's chunk that are used. A complete answer has the same form.
type chunk struct {
	Candidates []candidate `json:"candidates"`
	Prompt     struct {
		Reason  string `json:"blockReason"`
		Message string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage json.RawMessage `json:"usageMetadata"`
	Model string          `json:"modelVersion"`
	ID    string          `json:"responseId"`
	Error json.RawMessage `json:"error"`
}

// candidate is an alternative answer. Requests ask for only one.
type candidate struct {
	Content struct {
		Parts []json.RawMessage `json:"parts"`
	} `json:"content"`
	Grounding json.RawMessage `json:"groundingMetadata"`
	Reason    string          `json:"finishReason"`
	Message   string          `json:"finishMessage"`
	Ratings   []struct {
		Category string `json:"category"`
		Blocked  bool   `json:"blocked"`
	} `json:"safetyRatings"`
}

// decoder reads one answer.
type decoder struct {
	reply     llm.Reply
	text      strings.Builder
	reasoning strings.Builder
	parts     []keptPart
	ids       wire.MadeIDs
	usage     json.RawMessage // the last report of the usage
	larger    json.RawMessage // an earlier report that may contain more
	grounding json.RawMessage // the last report of sources, which covers the whole answer
	message   string          // the provider's message about the stop reason
	filters   []string        // the filters that blocked the answer
	blocked   bool            // whether the prompt was blocked rather than the answer
	whole     bool            // whether the answer was a single document
}

func newDecoder(requestID string) *decoder {
	return &decoder{reply: llm.Reply{RequestID: requestID}}
}

// Event handles one event. There is no event for the end of the stream: it is closed after the chunk with the finish reason.
func (d *decoder) Event(out []llm.Delta, name string, data []byte) ([]llm.Delta, bool, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return out, false, nil
	}
	if string(data) == "[DONE]" {
		return out, true, nil // not part of this protocol, but some proxies add it
	}
	if wire.Ping(data) && name != "error" {
		return out, false, nil // a ping, or null
	}
	out, err := d.chunk(out, name, data)
	return out, false, err
}

// Whole handles an answer that is not a stream of events: one document, or a list of chunks from a
// server that does not know alt=sse.
func (d *decoder) Whole(out []llm.Delta, data []byte) ([]llm.Delta, error) {
	d.whole = true
	chunks := []json.RawMessage{data}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		if err := json.Unmarshal(data, &chunks); err != nil {
			return out, d.protocol("a list that is not an answer: %v", err)
		}
	}
	for _, raw := range chunks {
		var err error
		if out, err = d.chunk(out, "", raw); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (d *decoder) chunk(out []llm.Delta, name string, data []byte) ([]llm.Delta, error) {
	var c chunk
	if err := jsonv2.UnmarshalLenient(data, &c); err != nil {
		if name == "error" {
			return out, d.failure(data)
		}
		return out, d.protocol("an event that is not a chunk: %v", err)
	}
	if name == "error" || wire.Says(c.Error) {
		return out, d.failure(data)
	}
	if c.ID != "" {
		d.reply.ID = c.ID
	}
	if c.Model != "" {
		d.reply.Model = c.Model
	}
	if present(c.Usage) {
		if len(c.Usage) < len(d.usage) {
			d.larger = d.usage // a report with zeros is shorter, and may be the last one
		}
		d.usage = bytes.Clone(c.Usage)
	}
	if c.Prompt.Reason != "" {
		d.blocked = true
		d.reply.StopReason, d.message = c.Prompt.Reason, c.Prompt.Message
	}
	for i := range c.Candidates {
		var err error
		if out, err = d.candidate(out, &c.Candidates[i]); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (d *decoder) candidate(out []llm.Delta, c *candidate) ([]llm.Delta, error) {
	if c.Reason != "" && c.Reason != "FINISH_REASON_UNSPECIFIED" {
		d.reply.StopReason, d.message = c.Reason, c.Message
	}
	if present(c.Grounding) {
		d.grounding = bytes.Clone(c.Grounding)
	}
	for _, r := range c.Ratings {
		if r.Blocked {
			d.filters = append(d.filters, r.Category)
		}
	}
	for _, raw := range c.Content.Parts {
		var err error
		if out, err = d.add(out, bytes.Clone(raw)); err != nil {
			return out, err
		}
	}
	return out, nil
}

// End ends the answer.
func (d *decoder) End(out []llm.Delta) ([]llm.Delta, error) {
	r := &d.reply
	r.Text, r.Reasoning = d.text.String(), d.reasoning.String()
	d.finishUsage()
	r.Sources = sources(d.grounding)
	var err error
	if r.Metadata, err = d.keep(); err != nil {
		return out, err
	}
	switch {
	case r.StopReason == "" && !d.whole:
		return out, &llm.TruncatedError{RequestID: r.RequestID}
	case r.StopReason == "" && r.CheckContent() != nil:
		return out, d.protocol("a document that is not an answer")
	case d.blocked:
		r.Refusal = d.explain("the prompt was blocked")
	case r.Refused():
		r.Refusal = d.explain("the answer was blocked")
	case rules.EndingOf(r.StopReason) >= rules.Failed:
		return out, &llm.ProviderError{Message: d.explain("the model stopped abnormally"), Type: r.StopReason, RequestID: r.RequestID}
	}
	if r.Refusal != "" {
		out = append(out, llm.Delta{Kind: llm.Refusal, Text: r.Refusal})
	}
	return out, nil
}

// explain returns the provider's own message about the stop reason, or else what.
func (d *decoder) explain(what string) string {
	if d.message != "" {
		return d.message
	}
	return what + ": " + strings.Join(append([]string{d.reply.StopReason}, d.filters...), ", ")
}

// Reply returns the reply received so far.
func (d *decoder) Reply() *llm.Reply { return &d.reply }

// finishUsage reads the last usage. The protocol counts thinking separately from the answer, and the prompts of the provider's
// own tools separately from the prompt. Zeros are omitted.
func (d *decoder) finishUsage() {
	if d.usage == nil {
		return
	}
	d.reply.Usage = d.readUsage(d.usage)
	if d.larger != nil {
		d.reply.Usage = wire.Larger(d.readUsage(d.larger), d.reply.Usage)
	}
}

func (d *decoder) readUsage(raw json.RawMessage) llm.Usage {
	v := wire.ReadCounts(raw)
	prompt, tools, thought := v.Known("promptTokenCount"), v.Of("toolUsePromptTokenCount"), v.Of("thoughtsTokenCount")
	u := llm.Usage{InputTokens: prompt, CachedInputTokens: v.Of("cachedContentTokenCount"), ReasoningTokens: thought, Raw: raw}
	if tools > 0 {
		u.InputTokens = new(v.Of("promptTokenCount") + tools)
	}
	if output := v.Of("candidatesTokenCount") + thought; output > 0 || prompt != nil && d.reply.StopReason != "" {
		u.OutputTokens = new(output)
	}
	return u
}

// sources reads the citations of an answer, which may or may not refer to a passage.
func sources(grounding json.RawMessage) (out []llm.Source) {
	type place struct {
		URI   string `json:"uri"`
		Title string `json:"title"`
		Text  string `json:"text"`
	}
	var g struct {
		Chunks []struct {
			Web       place `json:"web"`
			Retrieved place `json:"retrievedContext"`
			Maps      place `json:"maps"`
		} `json:"groundingChunks"`
		Supports []struct {
			Segment struct {
				Text string `json:"text"`
			} `json:"segment"`
			Chunks []int `json:"groundingChunkIndices"`
		} `json:"groundingSupports"`
	}
	if len(grounding) == 0 || jsonv2.UnmarshalLenient(grounding, &g) != nil {
		return nil
	}
	source := func(i int, claim string) llm.Source {
		c := g.Chunks[i]
		return llm.Source{URL: cmp.Or(c.Web.URI, c.Retrieved.URI, c.Maps.URI), Title: cmp.Or(c.Web.Title, c.Retrieved.Title, c.Maps.Title), Quote: c.Retrieved.Text, Claim: claim}
	}
	cited := map[int]bool{}
	for _, s := range g.Supports {
		for _, i := range s.Chunks {
			if i >= 0 && i < len(g.Chunks) {
				cited[i] = true
				out = append(out, source(i, s.Segment.Text))
			}
		}
	}
	for i := range g.Chunks {
		if !cited[i] {
			out = append(out, source(i, ""))
		}
	}
	return out
}

// failure converts a provider's error to a Go error. Source: Google Cloud API design guide, "Errors".
func (d *decoder) failure(data []byte) error {
	e := &llm.ProviderError{Message: string(data), RequestID: d.reply.RequestID}
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	inner := json.RawMessage(data)
	if json.Unmarshal(data, &outer) == nil && present(outer.Error) {
		inner = outer.Error
	}
	var fault struct {
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
		Status  string          `json:"status"`
	}
	var text string
	switch {
	case json.Unmarshal(inner, &fault) == nil && fault.Message != "":
		e.Message, e.Type = fault.Message, fault.Status
		if e.Code = strings.Trim(string(fault.Code), `"`); e.Code == "null" {
			e.Code = ""
		}
	case json.Unmarshal(inner, &text) == nil:
		e.Message = text
	}
	return e
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (d *decoder) protocol(format string, args ...any) error {
	return &llm.ProtocolError{Reason: fmt.Sprintf(format, args...), RequestID: d.reply.RequestID}
}
