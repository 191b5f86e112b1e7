package tool_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
)

// A refund runs only after it has been approved. The effect declares what the tool does to the world, and Preview describes it to
// the approver, which here is a limit on the amount.
func ExampleConfirm() {
	type refund struct {
		Order string  `json:"order"`
		USD   float64 `json:"usd"`
	}
	pay := tool.Func("refund", "Pays the price of an order back.",
		func(_ context.Context, in refund) (string, error) {
			fmt.Println("paying", in.USD)
			return "paid", nil
		},
		tool.Effects("net"),
		tool.Preview(func(_ context.Context, in refund) (string, error) {
			return fmt.Sprintf("%.2f USD to order %s", in.USD, in.Order), nil
		}))
	desk := tool.Approver{Approve: func(ctx context.Context, c tool.Call) (tool.Decision, error) {
		text, err := c.Preview(ctx)
		fmt.Println("asked for", text)
		return tool.Decision{Allowed: text == "20.00 USD to order 7", Reason: "above the limit of the desk"}, err
	}}
	model := script.New(
		script.Call("refund", `{"order":"8","usd":900}`),
		script.Call("refund", `{"order":"7","usd":20}`),
		script.Text("Order 7 was paid back."),
	)
	support := agent.New("support", dag.NewType[agent.Text]("answer"), model, agent.Config{
		User: agent.Say("Orders 7 and 8 did not arrive."),
		Use:  []agent.Middleware{tool.Confirm(pay, desk)}, // tool.Ask asks a person
	})
	result, err := stone.Run(context.Background(), support, stone.Config{Grant: []string{"net"}})
	fmt.Println(result.Node.Text(), err)
	// Output:
	// asked for 900.00 USD to order 8
	// asked for 20.00 USD to order 7
	// paying 20
	// Order 7 was paid back. <nil>
}
