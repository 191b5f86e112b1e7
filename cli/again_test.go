package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// A step, a lane or what is around them is named by its path, the end of it, as a command prints it, or by the beginning of the
// id of a step's node.
func TestSpotOf(t *testing.T) {
	steps := []journal.Step{{Path: "p/a", Node: dag.ID{0xab, 0x12}}, {Path: "p/b", Node: dag.ID{0xcd, 0x34}}, {Path: "q/b", Node: dag.ID{0xab, 0x56}},
		{Path: "q/llm|code 1"}, {Path: "chat%2Fanswer/turn-1"}, {Path: "x/a%2Fc"}, {Path: "y/a/c"},
		{Path: "p/each[0]/re%2Fply"}, {Path: "p/each[1]/re%2Fply"}, {Path: "p/m[\"x\"]/last"}}
	for name, want := range map[string]string{
		"p/a": "p/a <nil>", "a": "p/a <nil>", "cd34": "p/b <nil>", "ab5600": "q/b <nil>",
		"b":            ` "b" matches 2 places of run r: name one by its id or its whole path: cd3400000000 p/b, ab5600000000 q/b`,
		"q/llm/code 1": "q/llm|code 1 <nil>", "llm/code 1": "q/llm|code 1 <nil>", "llm|code 1": "q/llm|code 1 <nil>",
		"chat/answer/turn-1": "chat%2Fanswer/turn-1 <nil>", "chat%2Fanswer/turn-1": "chat%2Fanswer/turn-1 <nil>",
		"a/c": "y/a/c <nil>", "x/a/c": "x/a%2Fc <nil>",
		"p/each[1]": "p/each[1] <nil>", "each[1]": "p/each[1] <nil>", "each[1] two": "p/each[1] <nil>", "each[two]": "p/each[1] <nil>", "each": "p/each <nil>",
		"p/each[two]/re/ply": "p/each[1]/re%2Fply <nil>", "p/m/last": "p/m[\"x\"]/last <nil>",
		"each/re/ply": ` "each/re/ply" matches 2 places of run r: name one by its id or its whole path: p/each[0]/re/ply, p/each[1]/re/ply`,
		"llm/codes 1": ` run r has no step or node "llm/codes 1": did you mean llm/code 1?`,
		"ef":          ` run r has no step or node "ef": run show without a name to list them`,
	} {
		if at, err := spotOf("r", steps, func(path string) string { return strings.Replace(path, "[1]", "[two]", 1) }, name); fmt.Sprint(at, " ", err) != want {
			t.Errorf("%s: %s %v, want %s", name, at, err, want)
		}
	}
}
