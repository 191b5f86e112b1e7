package ask_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
)

func ExampleChannel() {
	approval := dag.NewType[stone.Answer]("approval")
	p := stone.Ask("approve", dag.Nothing, approval, func(struct{}) string { return "Deploy to production?" },
		stone.Choices("yes", "no"))

	questions := make(ask.Channel)
	go func() {
		q := <-questions
		fmt.Println(q.Text, q.Choices)
		q.Answer("yes", "ada")
	}()
	res, err := stone.Run(context.Background(), p, stone.Config{Frontend: questions})
	fmt.Println(res.Node.JSON(), err)
	// Output:
	// Deploy to production? [yes no]
	// {"response":"yes"} <nil>
}
