package trace

import (
	"fmt"
	"iter"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/lines"
)

// Lifecycle returns the events that show the course of the run, in order: starts and ends of runs, ashlars, agents and lanes,
// calls to models and their responses, tools, attempts and verdicts, plans, questions, replayed steps, and every failure, which is
// an event of type "failure" or of level error. Errors are also yielded.
func Lifecycle(events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			if (err != nil || told(e)) && !yield(e, err) {
				return
			}
		}
	}
}

func told(e event.Event) bool {
	switch e.Data.(type) {
	case event.RunStarted, event.RunEnded, event.StepStarted, event.StepDone, event.StepReplayed, event.StepFailed,
		event.LaneStarted, event.LaneEnded, event.AgentStarted, event.AgentEnded, event.ModelRequest, event.ModelResponse,
		event.Progress, event.ToolDone, event.CallAttempt, event.CallVerdict, event.PlanChecked,
		event.QuestionAsked, event.QuestionAnswered:
		return true
	}
	return e.Level() >= slog.LevelError
}

// extras are the fields to show, in this order, with their short labels.
var extras = []struct{ label, field string }{
	{"turn", "turn-number"}, {"msgs", "message-count"}, {"tool", "tool-name"}, {"lane", "lane"}, {"lanes", "lanes"}, {"lost", "lost"},
	{"call", "call"}, {"intent", "intent"}, {"cap", "cap"}, {"attempt", "attempt"}, {"attempts", "attempts"}, {"score", "score"},
	{"failure", "failure"}, {"plan", "plan"}, {"findings", "findings"}, {"question", "question"}, {"answer", "answer"},
	{"step", "step"}, {"replayed", "replayed"}, {"model", "model"}, {"in", "input-tokens"}, {"out", "output-tokens"}, {"usd", "usd"},
	{"calls", "tool-call-count"}, {"stop", "stop-reason"}, {"kind", "kind"}, {"reason", "reason"}, {"reason", "error"},
	{"ms", "latency"}, {"ms", "elapsed"},
}

// maxExtra is the maximum number of characters shown per value.
const maxExtra = 200

// FormatLifecycleLine formats an event as one line without a newline: the local time, the type, the name of the ashlar, and the
// most useful fields, such as turn=5 msgs=19. Values that would break the line are quoted and escaped.
func FormatLifecycleLine(e event.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-18s  %-12s", clock(e.Time), orDash(e.Type()), orDash(e.Name))
	fields := map[string]slog.Value{}
	for _, a := range e.Attrs() {
		fields[a.Key] = a.Value
	}
	separator := "  "
	for _, x := range extras {
		if value, ok := scalar(fields[x.field]); ok {
			b.WriteString(separator + x.label + "=" + quoteIfNeeded(lines.Cut(value, maxExtra)))
			separator = " "
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// scalar formats a value that fits on a line. It formats a list as its length.
func scalar(v slog.Value) (string, bool) {
	var f float64
	switch v.Kind() {
	case slog.KindString:
		return v.String(), v.String() != ""
	case slog.KindBool, slog.KindInt64:
		return v.String(), true
	case slog.KindDuration:
		f = float64(v.Duration()) / float64(time.Millisecond)
	case slog.KindFloat64:
		f = v.Float64()
	default:
		list, ok := v.Any().([]string)
		return strconv.Itoa(len(list)), ok
	}
	switch size := math.Abs(f); { // durations have more digits than are meaningful
	case size < 10: // for example, scores
		f = math.Round(f*1000) / 1000
	case size < 1e15:
		f = math.Round(f*10) / 10
	}
	return strconv.FormatFloat(f, 'f', -1, 64), true
}

// clock returns the local time of day.
func clock(t time.Time) string {
	if t.IsZero() {
		return "--:--:--"
	}
	return t.Local().Format(time.TimeOnly)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return lines.Printable(lines.Cut(s, maxExtra))
}

func quoteIfNeeded(s string) string {
	if strings.ContainsAny(s, " \"=") || lines.Printable(s) != s {
		return strconv.Quote(s)
	}
	return s
}
