package expr_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stonelayer/stone/x/cel/internal/expr"
)

func Example() {
	slots := map[string]json.RawMessage{
		"dough": json.RawMessage(`{"text":"heavy"}`),
		"oven":  json.RawMessage(`{"heat":220}`),
	}
	guard, err := expr.Compile("size(dough.text) > 3", []string{"dough", "oven"}, expr.Bool)
	if err != nil {
		panic(err)
	}
	fmt.Println(guard.Variables())
	fmt.Println(guard.Bool(context.Background(), slots))

	_, err = expr.Compile("oven.heat > 200 && duogh.text != ''", []string{"dough", "oven"}, expr.Bool)
	fmt.Println(err)
	// Output:
	// [dough]
	// true <nil>
	// 1:20: unknown name duogh, did you mean dough?
}
