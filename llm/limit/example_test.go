package limit_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone/llm/limit"
	"github.com/stonelayer/stone/llm/openai"
)

// Two models share the limits of one key. A person waits for the second request.
func Example() {
	shared := limit.New(limit.Limits{RequestsPerMinute: 500, TokensPerMinute: 200_000, Concurrency: 20})
	large := openai.New(openai.Config{Model: "gpt-5", Key: "…", Limiter: shared})
	small := openai.New(openai.Config{Model: "gpt-5-mini", Key: "…", Limiter: shared})

	batch := context.Background()
	person := limit.Interactive(batch)
	fmt.Println(large, small, person != batch)
	// Output: openai.Model(gpt-5 at https://api.openai.com/v1/responses) openai.Model(gpt-5-mini at https://api.openai.com/v1/responses) true
}

// A Limiter paces anything.
func ExampleLimiter_Enter() {
	mail := limit.New(limit.Limits{RequestsPerMinute: 30})
	for _, to := range []string{"a", "b"} {
		place, err := mail.Enter(context.Background(), limit.Request{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("sent to", to)
		place.Leave(0)
	}
	// Output:
	// sent to a
	// sent to b
}
