package anthropic

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/x/gateway/internal/openai"
)

// The page for users says what is done with each parameter.
func TestParameters(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[openai.Use][]string{}
	for _, name := range slices.Sorted(maps.Keys(Parameters)) {
		rows[Parameters[name]] = append(rows[Parameters[name]], "`"+name+"`")
	}
	for use, names := range rows {
		if row := fmt.Sprintf("| %s | %s |\n", strings.Join(names, ", "), use); !strings.Contains(string(page), row) {
			t.Errorf("docs/reference/gateway.md lacks %s", row)
		}
	}
}
