package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/serve/api"
)

// reasoning is an output item that contains the reasoning of an answer.
type reasoning struct {
	Type      string        `json:"type"`
	ID        string        `json:"id"`
	Summary   []summaryText `json:"summary"`
	Encrypted string        `json:"encrypted_content,omitempty"`
}

type summaryText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Sealed is the prefix of the encrypted content of reasoning. It is followed by the id of the run. The provider's data itself
// remains in the run, so clients can neither read nor change it.
const Sealed = "stone/"

// thoughtOf returns the reasoning of an answer: its summary and the data that the provider needs in the next turn. If there is
// neither, it returns false.
func (resp *response) thoughtOf(r *llm.Reply) (item reasoning, ok bool) {
	item = reasoning{Type: "reasoning", ID: "rs_" + strings.TrimPrefix(resp.ID, "resp_"), Summary: []summaryText{}}
	if r.Reasoning != "" {
		item.Summary = append(item.Summary, summaryText{"summary_text", r.Reasoning})
	}
	if resp.encrypted && len(r.Metadata) > 0 {
		item.Encrypted = Sealed + resp.ID
	}
	return item, r.Reasoning != "" || len(r.Metadata) > 0
}

// thought records that a turn of the model has the reasoning of an earlier response. Reasoning from other servers is ignored,
// because only they can decode it.
func (t dialogue) thought(it item) {
	suffix, ours := strings.CutPrefix(it.Encrypted, Sealed+"resp_")
	if !ours {
		suffix, ours = strings.CutPrefix(it.ID, "rs_")
	}
	if !ours || it.Encrypted != "" && !strings.HasPrefix(it.Encrypted, Sealed) {
		return
	}
	at := len(t.Messages)
	if at > 0 && t.Messages[at-1].Role == llm.RoleAssistant {
		at--
	}
	t.recalled[at] = "resp_" + suffix
}

// maxRecalled limits the turns per conversation whose reasoning is restored; these are the newest turns.
const maxRecalled = 256

// Recall adds to the model's turns the data that the provider sent with them, such as encrypted reasoning and signatures. No data
// is added to a turn that the client has changed, or whose run was removed. Recalled maps the positions of turns to the ids of
// their runs.
func Recall(ctx context.Context, b Backend, req *llm.Request, recalled map[int]string) error {
	left := maxRecalled
	for i, m := range slices.Backward(req.Messages) {
		id := recalled[i]
		if id == "" || m.Role != llm.RoleAssistant || left == 0 {
			continue
		}
		left--
		was, err := answerTo(ctx, b, id)
		if was != nil && sameTurn(m, was.Message()) {
			req.Messages[i].Metadata = was.Metadata
		}
		if err != nil && !missing(err) {
			return err
		}
	}
	return nil
}

// missing reports whether err means that a response does not exist or is not visible to the caller.
func missing(err error) bool {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return p.Status == http.StatusNotFound
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status == http.StatusNotFound
	}
	return errors.Is(err, journal.ErrNoRun)
}

// sameTurn reports whether a turn that a client sends equals the model's turn: it has the same text and calls. If a client
// requested a format, it received the text of a code block without the fences.
func sameTurn(a, b llm.Message) bool {
	return (a.Text() == b.Text() || a.Text() == structured.Unfence(b.Text())) && slices.EqualFunc(a.ToolCalls, b.ToolCalls, func(a, b llm.ToolCall) bool {
		return a.ID == b.ID && a.Name == b.Name && bytes.Equal(plain(a.Input), plain(b.Input))
	})
}

// plain returns the canonical form of a JSON value, which is the same for equal values.
func plain(raw json.RawMessage) []byte {
	text, err := canon.AppendJSON(nil, raw)
	if err != nil {
		return raw
	}
	return text
}
