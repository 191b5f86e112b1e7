package serve

import (
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
)

// The types of a pipeline that answers messages.
var (
	message = dag.NewType[string]("message")
	answer  = dag.NewType[agent.Text]("answer")
)

// chat implements Chat of [publish.Server].
func chat(name string, app *call.Applicator, spec call.Spec) stone.Ashlar {
	return agent.New(name, answer, call.Model(app, spec), agent.Config{Conversation: agent.ConversationOf(answer), User: message})
}
