package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// eye is an agent that says what it was shown by each message of the conversation.
func eye() stone.Ashlar {
	model := script.Func(func(_ int, req *llm.Request) script.Answer {
		var seen []string
		for _, m := range req.Messages {
			if m.Role == llm.RoleUser {
				seen = append(seen, fmt.Sprint(m.Text(), m.Media()))
			}
		}
		return script.Text(strings.Join(seen, "; "))
	})
	return agent.New("eye", reply, model, agent.Config{Conversation: agent.ConversationOf(reply), User: asks, Media: agent.MediaOf(dag.NewType[[]*llm.Media]("files"))})
}

// The model of an agent sees the picture and the files of a message, which needs no field for them, and of the messages before
// it in the context. The card says that the agent takes pictures.
func TestMedia(t *testing.T) {
	overBoth(t, func(t *testing.T, h *house, c *a2aclient.Client) {
		card, err := agentcard.NewResolver(nil).Resolve(t.Context(), h.url)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range card.Skills {
			if takes := slices.Contains(s.InputModes, "image/*"); takes != (s.ID == "eye") {
				t.Errorf("skill %s has the input modes %v", s.ID, s.InputModes)
			}
		}
		file := func(name, content string) *sdk.Part {
			p := sdk.NewRawPart([]byte(content))
			p.Filename = name
			return p
		}
		picture := sdk.NewRawPart([]byte("\x89PNG\r\n\x1a\n"))
		picture.MediaType = "image/png"
		send := func(context string, parts ...*sdk.Part) *sdk.Task {
			m := sdk.NewMessage(sdk.MessageRoleUser, parts...)
			m.ContextID = context
			m.SetMeta("skill", "eye")
			return h.send(c, &sdk.SendMessageRequest{Message: m})
		}
		first := send("", sdk.NewTextPart("What?"), picture, file("a.txt", "slate"))
		const saw = "What?[image/png, 8 bytes a.txt, text/plain, 5 bytes]"
		want(t, shown(first), "completed: "+saw)
		linked := sdk.NewFileURLPart("https://test.invalid/b.pdf", "application/pdf")
		want(t, shown(send(first.ContextID, sdk.NewTextPart("And?"), linked)), "completed: "+saw+"; And?[application/pdf, https://test.invalid/b.pdf]")
		want(t, shown(send("", picture)), "completed: [image/png, 8 bytes]")
	})
}
