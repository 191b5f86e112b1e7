package recipes

import (
	"context"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// Summary is the status page's description of an incident.
type Summary struct {
	Title  string `json:"title"`
	Impact string `json:"impact"`
	Cause  string `json:"cause" jsonschema:"unknown, if the log does not say it"`
}

var (
	Log       = dag.NewType[string]("log")
	Drafted   = dag.NewType[Summary]("summary")
	Approval  = dag.NewType[stone.Answer]("approval")
	Published = dag.NewType[string]("published")
)

// Incident summarises the log of an incident. A person must approve the summary before it is published, and can do so from any
// process: the run waits, for days if necessary.
func Incident(m llm.Model) stone.Ashlar {
	return stone.Seq("incident",
		agent.New("summarise", Drafted, m, agent.Config{
			System: agent.Say("You summarise the log of an incident for customers. No names, no guesses."),
			User:   agent.Prompt(Log, func(log string) string { return log }),
		}),
		stone.Ask("approve", Drafted, Approval, func(s Summary) string {
			return "Publish this?\n\n" + s.Title + "\n" + s.Impact + "\nCause: " + s.Cause
		}, stone.Choices("yes", "no")),
		stone.Match("approved", stone.Lens("response"),
			stone.Case("yes", stone.Func("publish", Drafted, Published, publish)),
			stone.Case("no", stone.Func("drop", Drafted, Published, func(context.Context, Summary) (string, error) {
				return "not published", nil
			})),
		),
	)
}

// publish returns the text that is published. Replace it by a request to your status page: a recorded step is never repeated.
func publish(_ context.Context, s Summary) (string, error) {
	return s.Title + ": " + s.Impact, nil
}
