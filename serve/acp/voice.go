package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// A voice tells the editor what happens in a turn. Its methods are called one after the other.
type voice struct {
	a    *agent
	id   sdk.SessionId
	from string // the step whose text was streamed last
	text string // of it
	run  string // whose steps are told
	seq  int64  // of the last one
	seen map[string]bool
}

// update sends an update. An editor that cannot be told has gone, which the turn finds out.
func (v *voice) update(ctx context.Context, u sdk.SessionUpdate) {
	_ = v.a.editor.SessionUpdate(context.WithoutCancel(ctx), sdk.SessionNotification{SessionId: v.id, Update: u})
}

func (v *voice) say(ctx context.Context, text string) {
	if text != "" {
		v.update(ctx, sdk.UpdateAgentMessageText(text))
	}
}

// listen tells the editor the steps of a run and what models write in it, until stop is called. Heard is
// closed when nothing more is told.
func (v *voice) listen(ctx context.Context, run string) (heard <-chan struct{}, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	done := make(chan struct{})
	if v.run != run {
		v.run, v.seq, v.seen = run, 0, map[string]bool{}
	}
	go func() {
		defer close(done)
		// Without the events the turn still has its end.
		_ = v.a.api.Follow(ctx, run, true, func(e api.Event) {
			switch {
			case e.Said != nil:
				v.said(ctx, e.Said)
			case e.Step != nil && e.Step.Seq > v.seq:
				v.seq = e.Step.Seq
				v.step(ctx, *e.Step)
			}
		})
	}()
	return done, stop
}

// step shows a step below the pipeline as a tool call.
func (v *voice) step(ctx context.Context, row journal.Row) {
	if !strings.Contains(row.Path, "/") || row.Kind == "value" {
		return
	}
	id := sdk.ToolCallId(v.run + " " + row.Path)
	if !v.seen[row.Path] {
		v.seen[row.Path] = true
		v.update(ctx, sdk.StartToolCall(id, row.Path, sdk.WithStartKind(sdk.ToolKindOther), sdk.WithStartStatus(sdk.ToolCallStatusInProgress)))
	}
	if row.Ended {
		status := sdk.ToolCallStatusCompleted
		if row.Failure != "" {
			status = sdk.ToolCallStatusFailed
		}
		v.update(ctx, sdk.UpdateToolCall(id, sdk.WithUpdateStatus(status)))
	}
}

// said tells what models have written since. Of several that write at once, one is told.
func (v *voice) said(ctx context.Context, pieces []api.Piece) {
	if len(pieces) == 0 {
		return
	}
	now := pieces[0]
	for _, p := range pieces {
		if p.Path == v.from {
			now = p
		}
	}
	more, follows := "", false
	if now.Path == v.from {
		more, follows = inside.After(v.text, now.Text)
	}
	if !follows { // what was told cannot be taken back
		if v.text != "" {
			more = "\n\n"
		}
		more, v.text = more+now.Text, ""
	}
	v.from, v.text = now.Path, v.text+strings.TrimPrefix(more, "\n\n")
	v.say(ctx, more)
}

// end tells the result of a run, or what it has more than was told, or how it failed.
func (v *voice) end(ctx context.Context, run api.Run) {
	text := ""
	switch {
	case run.Result != nil:
		var data json.RawMessage
		if text, data = inside.Plain(run.Result); data != nil {
			text = "```json\n" + string(data) + "\n```"
		}
	case run.Failure != nil:
		text = fmt.Sprintf("%s: %s (at %s)", run.Failure.Kind, run.Failure.Reason, run.Failure.Path)
	case run.Over():
		text = fmt.Sprintf("The turn is %s.", run.State)
	}
	if v.text != "" {
		if more, follows := strings.CutPrefix(text, v.text); follows {
			text = more
		} else if text != "" {
			text = "\n\n" + text
		}
	}
	v.from, v.text = "", ""
	v.say(ctx, text)
}

// conversation returns the messages that an agent keeps with its answer.
func conversation(n *api.Node) []llm.Message {
	var content struct {
		Conversation []llm.Message `json:"conversation"`
	}
	if n == nil || json.Unmarshal(n.Content, &content) != nil {
		return nil
	}
	return content.Conversation
}

// message tells a message of the history.
func (v *voice) message(ctx context.Context, m llm.Message) {
	switch text := m.Text(); {
	case text == "":
	case m.Role == llm.RoleUser:
		v.update(ctx, sdk.UpdateUserMessageText(text))
	case m.Role == llm.RoleAssistant:
		v.say(ctx, text)
	}
}
