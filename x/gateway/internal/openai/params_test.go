package openai

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// The page for users has the table, in the order in which it is searched.
func TestParameters(t *testing.T) {
	if !slices.IsSortedFunc(Parameters, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the parameters are not in order")
	}
	var table strings.Builder
	table.WriteString("| parameter | Responses | Chat | |\n| --- | --- | --- | --- |\n")
	for _, p := range Parameters {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", p.Name, p.Responses, p.Chat, p.Note)
	}
	page, err := os.ReadFile("../../../../docs/reference/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/reference/gateway.md lacks the table:\n%s", table.String())
	}
}
