// Package recipes contains programs that people often need. Each is in a file of its own: copy the file and change it.
//
//	stone run ./examples/recipes --input '{"text": "…"}' -- citations
//
// Each recipe takes its model as an argument, so that recipes_test.go can run all of them with a scripted model.
package recipes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

// recipes are the pipelines by name.
var recipes = map[string]func(llm.Model) stone.Ashlar{
	"bot": Bot, "citations": Citations, "clean": Clean, "incident": Incident, "rag": RAG, "report": Report,
	"research": Research, "review": Review, "translate": Translate,
}

// Pipeline returns the recipe with a name. It uses the model that the settings select.
func Pipeline(args []string) (stone.Ashlar, error) {
	names := strings.Join(slices.Sorted(maps.Keys(recipes)), ", ")
	if len(args) != 1 || recipes[args[0]] == nil {
		return stone.Ashlar{}, fmt.Errorf("found %q: want one of %s", args, names)
	}
	return recipes[args[0]](cli.DefaultModel()), nil
}

// Unsupported is the failure kind of an answer that its sources do not support.
const Unsupported kind.Kind = "unsupported"
