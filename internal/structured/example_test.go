package structured_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/schema"
)

func Example() {
	type Order struct {
		Cake  string `json:"cake"`
		Count uint8  `json:"count"`
	}
	order, err := schema.For[Order]()
	if err != nil {
		fmt.Println(err)
		return
	}
	form := structured.Of("order", order)
	model := script.New(script.Text(`{"cake": "sponge", "count": 300}`), script.Text("```json\n{\"cake\": \"sponge\", \"count\": 30}\n```"))

	req := &llm.Request{Messages: []llm.Message{llm.User("Thirty sponge cakes, please.")}, ResponseFormat: form.Format()}
	for range 2 { // the model may repair its answer once
		reply, err := llm.Collect(context.Background(), model, req)
		if err != nil {
			fmt.Println(err)
			return
		}
		data, misfit := form.Read(context.Background(), reply)
		if misfit == nil {
			fmt.Println(string(data))
			return
		}
		fmt.Println(misfit.Tell)
		req.Messages = append(req.Messages, reply.Message(), llm.User(misfit.Tell))
	}
	// Output:
	// Your answer does not fit the schema:
	// count: want at most 255, got integer 300
	// Answer again, with JSON that fits and nothing else.
	// {"cake": "sponge", "count": 30}
}

func ExampleDialect() {
	format := &llm.Format{Schema: []byte(`{"type":"object","properties":{"count":{"type":"integer","minimum":0}}}`)}
	fmt.Println(string(structured.OpenAI.Schema(format)))
	fmt.Println(string(structured.Anthropic.Schema(format)))
	// Output:
	// {"type":"object","properties":{"count":{"type":["integer","null"],"minimum":0}},"required":["count"],"additionalProperties":false}
	// {"type":"object","properties":{"count":{"type":"integer","description":"Must fit {\"minimum\":0}."}},"required":[],"additionalProperties":false}
}
