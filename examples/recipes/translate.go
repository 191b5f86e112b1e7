package recipes

import (
	"context"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// Verdict is a judge's opinion of a translation.
type Verdict struct {
	Score int    `json:"score" minimum:"0" maximum:"10" jsonschema:"10: nothing is wrong, missing or added"`
	Fault string `json:"fault,omitempty" jsonschema:"the worst fault, and a correction"`
}

var (
	Original   = dag.NewType[string]("original")
	Translated = dag.NewType[agent.Text]("translation")
	Judged     = dag.NewType[Verdict]("verdict")
	Passed     = dag.NewType[bool]("passed")
)

// goodEnough is the minimum score of an accepted translation.
const goodEnough = 8

// Translate translates a text into English. A second agent judges the translation. The translator is told the worst fault and
// tries again, up to three times.
func Translate(m llm.Model) stone.Ashlar {
	judge := stone.Seq("judge",
		agent.New("grade", Judged, m, agent.Config{
			System: agent.Say("You judge a translation into English. Be strict about meaning, names and numbers."),
			User: dag.Derive2(Original, Translated, func(text string, t agent.Text) string {
				return "Original:\n" + text + "\n\nTranslation:\n" + t.Text
			}),
		}),
		stone.Func("pass", Judged, Passed, func(_ context.Context, v Verdict) (bool, error) {
			if v.Score < goodEnough {
				return false, stone.Fail("low-score", "%d of 10: %s", v.Score, v.Fault)
			}
			return true, nil
		}),
	)
	return agent.New("translate", Translated, m, agent.Config{
		System:    agent.Say("You translate into English. Answer with the translation alone."),
		User:      agent.Prompt(Original, func(text string) string { return text }),
		Adversary: judge,
	})
}
