package call_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
)

// A pipeline answers an intent. A check rejects its answer, and the next capability is invoked.
func ExamplePipeline() {
	word, shout := dag.NewType[string]("word"), dag.NewType[string]("shout")
	quiet := call.Func(call.Metadata{ID: "quiet", Intents: []string{"text/shout"}}, func(_ context.Context, w string) (string, error) { return w, nil })
	loud := call.Pipeline(call.Metadata{ID: "loud", Intents: []string{"text/shout"}},
		stone.Seq("loud", stone.Func("upper", word, shout, func(_ context.Context, w string) (string, error) { return strings.ToUpper(w), nil })), word, shout)
	app := &call.Applicator{
		Registry: call.NewRegistry(quiet, loud),
		Checks: map[string]call.Check{"loud": func(_ context.Context, s call.Subject) error {
			if text := string(s.Out); text != strings.ToUpper(text) {
				return errors.New("not loud")
			}
			return nil
		}},
		Policy: call.Policy{Intents: map[string]call.Rules{"text/shout": {Done: call.Done{Must: []string{"loud"}}}}},
	}
	answer := dag.NewType[string]("answer")
	ask := call.New("shout", answer, call.Spec{Applicator: app, Intent: "text/shout", Input: call.From(word)})
	result, err := stone.Run(context.Background(), ask, stone.Config{Input: dag.Of(word.With("stone"))})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Node.Text(), "by", call.RecordOf(result.Node).Cap)
	// Output: STONE by loud
}
