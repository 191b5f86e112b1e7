package cli

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// toolCall is the name of the step of a tool call of an agent.
var toolCall = regexp.MustCompile(`^tool-[0-9]+-[0-9]+$`)

// maxTrouble bounds how much of a failed tool call's answer is shown, in runes.
const maxTrouble = 200

// troubles returns the answers of failed tool calls by path. Such a call is a step
// with a result: the model reads why it failed, and continues.
func (s *store) troubles(ctx context.Context, run string, steps []journal.Step) (map[string]string, error) {
	said := map[string]string{}
	for _, step := range steps {
		if step.Kind != "step" || !step.Recorded || step.Failure != "" || !toolCall.MatchString(step.Name) {
			continue
		}
		rec, err := s.Record(ctx, run, step.Path, step.Kind)
		if err != nil {
			return nil, failed("%w", err)
		}
		var outcome struct {
			Text   string `json:"text"`
			Failed bool   `json:"failed"`
		}
		if json.Unmarshal(rec.Content, &outcome) == nil && outcome.Failed {
			said[step.Path] = "failed: " + text.Cut(text.Line(strings.TrimSpace(outcome.Text)), maxTrouble)
		}
	}
	return said, nil
}
