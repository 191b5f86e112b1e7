package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/tool"
)

func Example() {
	type input struct {
		Text string `json:"text" jsonschema:"what to count in"`
	}
	count := tool.Func("count_words", "Counts the words of a text.",
		func(_ context.Context, in input) (string, error) {
			return fmt.Sprintf("%d words", len(strings.Fields(in.Text))), nil
		}, tool.Parallel())

	// The agent does this with every call that the model makes.
	result, err := count.Tool.Run(context.Background(), json.RawMessage(`{"text":"to be or not to be"}`))
	fmt.Println(result.Text, err)

	// The model is told what is wrong with a call.
	_, err = count.Tool.Run(context.Background(), json.RawMessage(`{"txt":"to be"}`))
	if wrong, ok := errors.AsType[*tool.InputError](err); ok {
		fmt.Println(len(wrong.Problems), "problems:", err)
	}
	// Output:
	// 6 words <nil>
	// 2 problems: the arguments of count_words are wrong: property "text" is required, but missing; property "txt" is not allowed; allowed: text; call it again with arguments that fit its schema
}
