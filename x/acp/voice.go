package acp

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// A voice sends the events of a session's turns to the editor. Its methods must not be called concurrently.
type voice struct {
	a    *agent
	id   sdk.SessionId
	run  string // run whose parts are being sent
	sent turn.Progress[sent]
	text string // text that was sent last
	told int    // number of tool calls sent from loaded histories
}

// sent records how much of a part has been sent.
type sent struct {
	id   sdk.ToolCallId // set once the part is shown as a tool call
	text int
	over bool
}

// update sends an update. Errors are ignored: if the editor is gone, the turn will notice it.
func (v *voice) update(ctx context.Context, u sdk.SessionUpdate) {
	_ = v.a.editor.SessionUpdate(context.WithoutCancel(ctx), sdk.SessionNotification{SessionId: v.id, Update: u})
}

func (v *voice) say(ctx context.Context, text string) {
	if text != "" {
		v.text += text
		v.update(ctx, sdk.UpdateAgentMessageText(text))
	}
}

// paragraph sends a text that does not continue the previous one.
func (v *voice) paragraph(ctx context.Context, text string) {
	if v.text != "" && text != "" {
		v.say(ctx, "\n\n")
	}
	v.text = ""
	v.say(ctx, text)
}

// tell sends those parts of a run, and that text of parts, that have not been sent yet. Text cannot be retracted once it has been
// sent.
func (v *voice) tell(ctx context.Context, run string, parts []turn.Part) {
	if v.run != run {
		v.run, v.sent = run, turn.Progress[sent]{}
	}
	times := map[string]int{}
	v.sent.Each(parts, func(p *turn.Part, at *sent) {
		times[p.ID]++
		switch p.Kind {
		case turn.Text, turn.Reasoning:
			v.said(ctx, p, at)
		case turn.Tool:
			v.call(ctx, p, at, times[p.ID])
		case turn.Step:
			v.step(ctx, p, at, times[p.ID])
		}
	})
}

// said sends the new part of a text. A text that was retracted before any part was sent is omitted.
func (v *voice) said(ctx context.Context, p *turn.Part, at *sent) {
	more := p.After(at.text)
	if more == "" || p.State == turn.Void {
		return
	}
	first := at.text == 0
	at.text = len(p.Text)
	switch {
	case p.Kind == turn.Reasoning:
		if first {
			more = strings.TrimLeft(more, "\n")
		}
		v.update(ctx, sdk.UpdateAgentThoughtText(more))
	case first:
		v.paragraph(ctx, more)
	default:
		v.say(ctx, more)
	}
}

// toolCall returns the tool call id for a part. Each attempt has its own id.
func toolCall(run string, p *turn.Part, nth int) sdk.ToolCallId {
	id := turn.ID(run, p.ID)
	if nth > 1 {
		id = fmt.Sprint(id, "#", nth)
	}
	return sdk.ToolCallId(id)
}

// step shows a leaf of the pipeline as a tool call.
func (v *voice) step(ctx context.Context, p *turn.Part, at *sent, nth int) {
	if !strings.Contains(p.ID, "/") || at.over {
		return
	}
	if at.id == "" {
		at.id = toolCall(v.run, p, nth)
		v.update(ctx, sdk.StartToolCall(at.id, p.ID, sdk.WithStartKind(sdk.ToolKindOther), sdk.WithStartStatus(sdk.ToolCallStatusInProgress)))
	}
	if p.State == turn.Done {
		at.over = true
		v.update(ctx, sdk.UpdateToolCall(at.id, sdk.WithUpdateStatus(statusOf(p.Failed))))
	}
}

func statusOf(failed bool) sdk.ToolCallStatus {
	if failed {
		return sdk.ToolCallStatusFailed
	}
	return sdk.ToolCallStatusCompleted
}

// call shows a tool call: its arguments, as the model writes them, and its result.
func (v *voice) call(ctx context.Context, p *turn.Part, at *sent, nth int) {
	if at.over || at.id == "" && (p.Tool == "" || p.State == turn.Void) {
		return
	}
	if at.id == "" {
		at.id = toolCall(v.run, p, nth)
		v.update(ctx, sdk.StartToolCall(at.id, p.Tool, sdk.WithStartKind(kindOf(p.Tool)), sdk.WithStartStatus(sdk.ToolCallStatusPending)))
	}
	const complete = 1 << 62 // means that all arguments were sent; other values are the length of the part that was sent
	switch {
	case at.text == complete:
	case p.Input != nil:
		at.text = complete
		v.update(ctx, sdk.UpdateToolCall(at.id, sdk.WithUpdateTitle(title(p.Tool, p.Input)), sdk.WithUpdateRawInput(p.Input), sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)))
	case len(p.Text) >= max(2*at.text, 1): // each update repeats all arguments, so send one when they have doubled, to stay linear
		at.text = len(p.Text)
		v.update(ctx, sdk.UpdateToolCall(at.id, sdk.WithUpdateRawInput(raw(p.Text))))
	}
	switch {
	case p.State == turn.Void:
		at.over = true
		v.update(ctx, sdk.UpdateToolCall(at.id, sdk.WithUpdateStatus(sdk.ToolCallStatusFailed)))
	case p.Output != nil:
		at.over = true
		v.result(ctx, at.id, *p.Output, p.Failed || p.Denied)
	}
}

// raw returns a text in the form of a call's input or output: a JSON object, because older editors ignore updates with other
// values.
func raw(text string) map[string]any { return map[string]any{"text": text} }

// kinds maps Stone's tools to the kinds from which editors choose an icon.
var kinds = map[string]sdk.ToolKind{
	"read_file": sdk.ToolKindRead, "view_file": sdk.ToolKindRead, "list_directory": sdk.ToolKindRead, "file_exists": sdk.ToolKindRead,
	"write_file": sdk.ToolKindEdit, "edit_file": sdk.ToolKindEdit, "mkdir": sdk.ToolKindEdit, "delete_file": sdk.ToolKindDelete,
	"search_documents": sdk.ToolKindSearch,
	"run_command":      sdk.ToolKindExecute, "start_command": sdk.ToolKindExecute, "check_command": sdk.ToolKindExecute, "wait_commands": sdk.ToolKindExecute,
}

func kindOf(tool string) sdk.ToolKind {
	if k, ok := kinds[tool]; ok {
		return k
	}
	return sdk.ToolKindOther
}

// end sends a run's result, if no part has sent it yet, or its failure.
func (v *voice) end(ctx context.Context, run api.Run) {
	text := ""
	switch {
	case run.Result != nil:
		var data json.RawMessage
		if text, data = inside.Plain(run.Result); data != nil {
			text = "```json\n" + string(data) + "\n```"
		}
	case run.State == journal.Canceled: // the stop reason already reports this
	case run.Failure != nil:
		text = fmt.Sprintf("%s: %s (at %s)", run.Failure.Kind, run.Failure.Reason, run.Failure.Path)
	case run.Over() || run.State == journal.Refused:
		text = fmt.Sprintf("The turn is %s.", run.State)
	}
	if text != v.text {
		v.paragraph(ctx, text)
	}
}

// conversation returns the messages that are stored with an agent's answer.
func conversation(n *api.Node) []llm.Message {
	var content struct {
		Conversation []llm.Message `json:"conversation"`
	}
	if n == nil || json.Unmarshal(n.Content, &content) != nil {
		return nil
	}
	return content.Conversation
}

// message sends a message of the history with its tool calls. Models may use the same call id twice; calls maps these ids to the
// ids that were sent to the editor.
func (v *voice) message(ctx context.Context, m llm.Message, calls map[string]sdk.ToolCallId) {
	switch text := m.Text(); {
	case m.Role == llm.RoleTool:
		if id := calls[m.CallID]; id != "" {
			v.result(ctx, id, text, m.IsError)
		}
	case m.Role == llm.RoleUser:
		v.heard(ctx, text, m.Media()...)
	case text == "":
	case m.Role == llm.RoleAssistant:
		v.paragraph(ctx, text)
	}
	for _, c := range m.ToolCalls {
		v.told++
		calls[c.ID] = sdk.ToolCallId(fmt.Sprintf("told-%d", v.told))
		v.update(ctx, sdk.StartToolCall(calls[c.ID], title(c.Name, c.Input), sdk.WithStartKind(kindOf(c.Name)), sdk.WithStartStatus(sdk.ToolCallStatusInProgress), sdk.WithStartRawInput(c.Input)))
	}
}

// title returns the title of a tool call.
func title(tool string, input json.RawMessage) string {
	if about := view.Argument(llm.ToolCall{Name: tool, Input: input}); about != "" {
		return tool + ": " + about
	}
	return tool
}

// result sends the result of a tool call.
func (v *voice) result(ctx context.Context, id sdk.ToolCallId, text string, failed bool) {
	v.update(ctx, sdk.UpdateToolCall(id, sdk.WithUpdateStatus(statusOf(failed)), sdk.WithUpdateRawOutput(raw(text)), sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(text))})))
}

// heard sends a user message of the history.
func (v *voice) heard(ctx context.Context, text string, media ...*llm.Media) {
	v.text = ""
	if text != "" || len(media) == 0 {
		v.update(ctx, sdk.UpdateUserMessageText(text))
	}
	for _, m := range media {
		v.update(ctx, sdk.UpdateUserMessage(block(m)))
	}
}

// block returns a content block for media. It is the inverse of contentOf.
func block(m *llm.Media) sdk.ContentBlock {
	data := base64.StdEncoding.EncodeToString(m.Data)
	switch {
	case m.URL != "":
		return sdk.ResourceLinkBlock(cmp.Or(m.Name, m.URL), m.URL)
	case strings.HasPrefix(m.Type, "image/"):
		return sdk.ImageBlock(data, m.Type)
	case strings.HasPrefix(m.Type, "audio/"):
		return sdk.AudioBlock(data, m.Type)
	}
	name := url.URL{Path: m.Name}
	return sdk.ResourceBlock(sdk.EmbeddedResourceResource{BlobResourceContents: &sdk.BlobResourceContents{Uri: name.String(), Blob: data, MimeType: &m.Type}})
}
