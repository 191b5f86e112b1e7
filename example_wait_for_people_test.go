package stone_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm/script"
)

// approver answers every question with "yes".
type approver struct{}

func (approver) Ask(_ context.Context, q ask.Question) (ask.Answer, error) {
	fmt.Println(q.Text)
	return ask.Answer{Response: "yes"}, nil
}

// A model answers, code checks the answer, and a person approves it.
func Example_approvedAnswer() {
	var (
		Question = dag.NewType[string]("question")
		Drafted  = dag.NewType[agent.Text]("draft")
		Cited    = dag.NewType[bool]("cited")
		Approval = dag.NewType[stone.Answer]("approval")
		Sent     = dag.NewType[string]("sent")
	)
	cited := func(_ context.Context, t agent.Text) (bool, error) {
		if !strings.Contains(t.Text, "§") {
			return false, stone.Fail("uncited", "name the section of the handbook, as § 2")
		}
		return true, nil
	}
	show := func(t agent.Text) string { return "Send this? " + t.Text }
	send := func(_ context.Context, t agent.Text) (string, error) { return "sent: " + t.Text, nil }
	drop := func(context.Context, agent.Text) (string, error) { return "dropped", nil }
	model := script.New(script.Text("Two weeks."), script.Text("Two weeks (§ 4)."))

	pipeline := stone.Seq("answer",
		agent.New("draft", Drafted, model, agent.Config{
			System:    agent.Say("Answer from the handbook."),
			User:      Question,
			Adversary: stone.Func("cited", Drafted, Cited, cited), // rejects the answer, and the model tries again
		}),
		stone.Ask("approve", Drafted, Approval, show, stone.Choices("yes", "no")),
		stone.Match("approved", stone.Lens("response"),
			stone.Case("yes", stone.Func("send", Drafted, Sent, send)),
			stone.Case("no", stone.Func("drop", Drafted, Sent, drop)),
		),
	)
	fmt.Println(stone.Produce(context.Background(), pipeline, Sent, stone.Config{
		Input: dag.Of(Question.With("How long may I return it?")), Frontend: approver{},
	}))
	// Output:
	// Send this? Two weeks (§ 4).
	// sent: Two weeks (§ 4). <nil>
}

// A frontend in the program answers the run's questions. With a journal, a run can also wait for an answer while no process is
// running.
func ExampleAsk() {
	version := dag.NewType[string]("version")
	approval := dag.NewType[stone.Answer]("approval")
	p := stone.Ask("approve", version, approval, func(v string) string { return "Deploy " + v + "?" }, stone.Choices("yes", "no"))
	questions := make(ask.Channel)
	defer close(questions)
	go func() {
		for q := range questions {
			fmt.Println(q.Text, q.Choices)
			q.Answer("yes", "ada")
		}
	}()
	answer, err := stone.Produce(context.Background(), p, approval, stone.Config{Input: dag.Of(version.With("1.2")), Frontend: questions})
	fmt.Println(answer.Response, err)
	// Output:
	// Deploy 1.2? [yes no]
	// yes <nil>
}
