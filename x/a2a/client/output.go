package client

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/x/a2a/internal/parts"
)

// An output collects the artifacts of a task as they are streamed.
type output struct {
	voice     *event.Voice
	artifacts []*sdk.Artifact
	size      int // approximate size of the artifacts in bytes
	spoken    strings.Builder
	last      *sdk.Artifact // the artifact whose text was streamed last
}

// begin returns an output that contains the artifacts that a task already has.
func (o *output) begin(all []*sdk.Artifact) {
	o.artifacts, o.size = nil, 0
	for _, a := range all {
		o.size += sizeOf(string(a.ID), a.Parts)
		o.artifacts = append(o.artifacts, &sdk.Artifact{ID: a.ID, Parts: slices.Clone(a.Parts)})
	}
	o.speak()
}

// update adds a chunk of an artifact.
func (o *output) update(e *sdk.TaskArtifactUpdateEvent) {
	if e.Artifact == nil {
		return
	}
	var to *sdk.Artifact
	for _, a := range o.artifacts {
		if a.ID == e.Artifact.ID {
			to = a
		}
	}
	if to == nil {
		to = &sdk.Artifact{ID: e.Artifact.ID}
		o.artifacts, o.size = append(o.artifacts, to), o.size+sizeOf(string(to.ID), nil)
	}
	if !e.Append {
		o.size -= sizeOf("", to.Parts)
		to.Parts = nil
	}
	to.Parts, o.size = append(to.Parts, e.Artifact.Parts...), o.size+sizeOf("", e.Artifact.Parts)
	if e.Append && to == o.last { // only the new text, because an answer may consist of many small chunks
		o.say(textOf(&sdk.Message{Parts: e.Artifact.Parts}))
	} else {
		o.speak()
	}
}

// sizeOf estimates the memory that parts occupy.
func sizeOf(id string, parts sdk.ContentParts) int {
	size := len(id)
	for _, p := range parts {
		const header = 64
		size += header + len(p.Text()) + len(p.Raw()) + len(p.URL()) + len(p.Filename) + len(p.MediaType)
		if p.Data() != nil {
			text, _ := json.Marshal(p.Data()) // cannot fail: the data was read from JSON
			size += len(text)
		}
	}
	return size
}

func (o *output) say(text string) {
	if o.spoken.WriteString(text); text != "" {
		o.voice.Say(event.Text, text)
	}
}

// speak streams the text that is new. If the text does not continue the text streamed before, speak retracts the earlier text
// first.
func (o *output) speak() {
	text := textIn(o.artifacts)
	more, follows := strings.CutPrefix(text, o.spoken.String())
	if !follows {
		o.voice.Again("the agent has replaced its answer")
		o.spoken.Reset()
		more = text
	}
	o.say(more)
	o.last = nil
	for _, a := range o.artifacts {
		if textOf(&sdk.Message{Parts: a.Parts}) != "" {
			o.last = a
		}
	}
}

// message returns the output for an agent's reply that does not create a task.
func (o *output) message(m *sdk.Message) (*call.Reply, error) {
	return o.reply([]*sdk.Artifact{{Parts: m.Parts}})
}

// task returns the output of a completed task: the task's artifacts or, if it has none, the agent's last message.
func (o *output) task(t *sdk.Task) (*call.Reply, error) {
	blank := func(p *sdk.Part) bool {
		text, ok := p.Content.(sdk.Text)
		return ok && strings.TrimSpace(string(text)) == ""
	}
	for _, a := range t.Artifacts {
		if slices.ContainsFunc(a.Parts, func(p *sdk.Part) bool { return !blank(p) }) {
			return o.reply(t.Artifacts)
		}
	}
	if t.Status.Message != nil {
		return o.message(t.Status.Message)
	}
	for i := len(t.History) - 1; i >= 0; i-- {
		if t.History[i].Role == sdk.MessageRoleAgent {
			return o.message(t.History[i])
		}
	}
	return o.reply(nil)
}

func (o *output) reply(all []*sdk.Artifact) (*call.Reply, error) {
	o.artifacts = all
	if o.voice.Said() || textIn(all) != "" {
		o.speak()
	}
	var out struct {
		Text  string       `json:"text"`
		Data  []any        `json:"data,omitempty"`
		Media []*llm.Media `json:"media,omitempty"`
	}
	out.Text = textIn(all)
	for _, a := range all {
		for _, part := range a.Parts {
			switch content := part.Content.(type) {
			case sdk.Data:
				out.Data = append(out.Data, content.Value)
			case sdk.Raw, sdk.URL:
				m, err := parts.Media(part)
				if err != nil {
					return nil, &call.Error{Type: reasons.SchemaInvalid, Message: "a file of the answer: " + err.Error(), Where: "result", Cause: err}
				}
				out.Media = append(out.Media, m)
			}
		}
	}
	value := any(out)
	if len(out.Data) == 1 && out.Text == "" && out.Media == nil {
		value = out.Data[0]
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, &call.Error{Type: reasons.SchemaInvalid, Message: "the answer has no JSON: " + err.Error(), Cause: err}
	}
	return &call.Reply{Type: call.Value, Out: text}, nil
}

// textIn returns the joined text of artifacts.
func textIn(all []*sdk.Artifact) string {
	var texts []string
	for _, a := range all {
		if text := textOf(&sdk.Message{Parts: a.Parts}); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// textOf returns the text of a message, which may be nil.
func textOf(m *sdk.Message) string {
	var text strings.Builder
	if m != nil {
		for _, part := range m.Parts {
			text.WriteString(part.Text())
		}
	}
	return text.String()
}
