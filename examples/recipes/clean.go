package recipes

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
)

// Day is a date as somebody wrote it, and in ISO 8601.
type Day struct {
	Raw string `json:"raw"`
	ISO string `json:"iso"`
}

// Guess is a model's interpretation of a date.
type Guess struct {
	ISO string `json:"iso" jsonschema:"YYYY-MM-DD"`
}

var (
	RawDays  = dag.NewType[[]string]("raw-days")
	RawDay   = dag.NewType[string]("raw-day")
	Parsed   = dag.NewType[Day]("parsed")
	Guessed  = dag.NewType[Guess]("guessed")
	Cleaned  = dag.NewType[Day]("cleaned")
	CleanCSV = dag.NewType[string]("csv")
	IsDay    = dag.NewType[bool]("is-day")
)

// Clean converts dates to a common format. Code converts the dates that it can read; only the others are sent to a model, whose
// answers must pass a gate. Dates that cannot be read are lost, and the run reports how many.
func Clean(m llm.Model) stone.Ashlar {
	row := stone.Seq("row",
		stone.Func("parse", RawDay, Parsed, func(_ context.Context, raw string) (Day, error) { return parseDay(raw), nil }),
		stone.Match("known", stone.On(Parsed, func(d Day) string { return fmt.Sprint(d.ISO != "") }),
			stone.Case("true", stone.Func("keep", Parsed, Cleaned, func(_ context.Context, d Day) (Day, error) { return d, nil })),
			stone.Case("false", stone.Seq("ask",
				agent.New("guess", Guessed, m, agent.Config{
					System:     agent.Say("You rewrite a day as YYYY-MM-DD. If it is no day, answer with an empty text."),
					User:       agent.Prompt(RawDay, func(raw string) string { return raw }),
					Adversary:  stone.Func("gate", Guessed, IsDay, isDay),
					MaxHealing: new(1),
				}),
				stone.Func2("take", RawDay, Guessed, Cleaned, func(_ context.Context, raw string, g Guess) (Day, error) { return Day{raw, g.ISO}, nil }),
			)),
		),
	)
	return stone.Seq("clean",
		stone.Map("rows", RawDays, RawDay, row, stone.Quorum(1)),
		stone.Reduce(stone.Func("write", dag.Lanes(Cleaned), CleanCSV, func(_ context.Context, all []Day) (string, error) {
			var out strings.Builder
			for _, d := range all {
				fmt.Fprintf(&out, "%s,%q\n", d.ISO, d.Raw)
			}
			return out.String(), nil
		})),
	)
}

func parseDay(raw string) Day {
	for _, layout := range []string{time.DateOnly, "2.1.2006", "January 2, 2006", "2 Jan 2006"} {
		if t, err := time.Parse(layout, strings.TrimSpace(raw)); err == nil {
			return Day{raw, t.Format(time.DateOnly)}
		}
	}
	return Day{Raw: raw}
}

func isDay(_ context.Context, g Guess) (bool, error) {
	if t, err := time.Parse(time.DateOnly, g.ISO); err != nil || t.Year() < 1900 || t.Year() > 2100 {
		return false, stone.Fail(Unsupported, "%q is no day between 1900 and 2100 in the form YYYY-MM-DD", g.ISO)
	}
	return true, nil
}
