package recipes

import (
	"context"
	"fmt"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/tool"
)

var (
	Message = dag.NewType[string]("message")
	Reply   = dag.NewType[agent.Text]("reply")
)

type reminder struct {
	Text string `json:"text"`
	In   string `json:"in" jsonschema:"a duration, such as 90m"`
}

// remind is a tool that the bot can use once its user has agreed. Replace the tool's function by a request to your calendar.
var remind = tool.Func("remind", "Reminds the user of something.", func(_ context.Context, r reminder) (string, error) {
	d, err := time.ParseDuration(r.In)
	if err != nil || d <= 0 {
		return "", fmt.Errorf("%q is no duration: write it as 90m or 2h", r.In)
	}
	return fmt.Sprintf("in %s: %s", d, r.Text), nil
}, tool.Effects("calendar/write"))

// Bot answers a message, and remembers the earlier messages. You can chat with it using "stone chat ./examples/recipes -- bot",
// and a server can offer it to clients of OpenAI's protocols.
func Bot(m llm.Model) stone.Ashlar {
	return agent.New("bot", Reply, m, agent.Config{
		System:       agent.Say("You are the assistant of one person. Be brief."),
		Conversation: agent.ConversationOf(Reply),
		User:         Message,
		Use:          []agent.Middleware{tool.Confirm(remind, tool.Ask)},
	})
}
