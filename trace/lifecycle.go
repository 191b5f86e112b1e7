package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
)

// lifecycle contains the types of events that show the course of a run.
var lifecycle = map[string]bool{
	"run-start": true, "run-end": true,
	"ashlar-start": true, "ashlar-end": true,
	"agent-ashlar-start": true, "agent-ashlar-end": true,
	"lane-start": true, "lane-end": true,
	"api-call": true, "api-response": true, "streaming-progress": true,
	"tool-dispatch": true,
	"call-attempt":  true, "call-verdict": true,
	"plan-checked":   true,
	"question-asked": true, "question-answered": true,
	"step-replayed": true,
	"failure":       true,
}

// Lifecycle returns the events that show the course of the run, in their order: starts
// and ends of runs, ashlars, agents and lanes, calls to models and their responses,
// tools, attempts and verdicts, plans, questions, replayed steps, and every failure,
// which is an event of type "failure" or of level error or fatal. Errors are passed on.
func Lifecycle(events iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	return filter(events, told)
}

func told(e Event) bool { return lifecycle[e.Type()] || e.Level == "error" || e.Level == "fatal" }

// filter passes on the errors and the events that keep accepts.
func filter(events iter.Seq2[Event, error], keep func(Event) bool) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for e, err := range events {
			if (err != nil || keep(e)) && !yield(e, err) {
				return
			}
		}
	}
}

// An extra is a label and the keys of the data it may come from; the first with a value
// is shown.
type extra struct {
	label string
	keys  []string
}

// extras are shown in this order for every type of event: each type has only some of the
// keys.
var extras = []extra{
	{"turn", []string{"turn-number"}},
	{"msgs", []string{"messages", "message-count"}},
	{"tool", []string{"tool-name"}},
	{"lane", []string{"lane"}},
	{"lanes", []string{"lanes"}},
	{"call", []string{"call"}},
	{"intent", []string{"intent"}},
	{"cap", []string{"cap"}},
	{"attempt", []string{"attempt"}},
	{"attempts", []string{"attempts"}},
	{"score", []string{"score"}},
	{"failure", []string{"failure"}},
	{"plan", []string{"plan"}},
	{"findings", []string{"findings"}},
	{"question", []string{"question"}},
	{"answer", []string{"answer"}},
	{"step", []string{"step", "address"}},
	{"model", []string{"model"}},
	{"in", []string{"input-tokens"}},
	{"out", []string{"output-tokens"}},
	{"tokens", []string{"tokens"}},
	{"usd", []string{"usd"}},
	{"chars", []string{"chars"}},
	{"calls", []string{"tool-calls", "tool-call-count"}},
	{"stop", []string{"stop-reason"}},
	{"status", []string{"status"}},
	{"kind", []string{"kind"}},
	{"reason", []string{"reason", "error"}},
	{"ms", []string{"ms", "latency-ms", "duration-ms", "elapsed-ms", "duration", "elapsed"}},
}

// maxExtra is the maximum number of characters shown of a value.
const maxExtra = 200

// FormatLifecycleLine renders an event as one line without a newline: local time, type
// (else message), name of the ashlar and the most useful fields, such as turn=5 msgs=19.
// Values that would break the line are quoted and escaped.
func FormatLifecycleLine(e Event) string {
	var b strings.Builder
	name := e.AshlarName()
	fmt.Fprintf(&b, "%s %-18s  %-12s", clock(e.Timestamp()), orDash(cmp.Or(e.Type(), e.Message)), orDash(name))
	separator := "  "
	for _, x := range extras {
		value, ok := x.value(e.Data)
		if !ok || x.label == "tool" && value == name {
			continue
		}
		b.WriteString(separator + x.label + "=" + quoteIfNeeded(cut(value, maxExtra)))
		separator = " "
	}
	return strings.TrimRight(b.String(), " ")
}

// value returns the text to show of the data. Counters of tokens may also be in an object
// "usage", with the providers' underscores in their names.
func (x extra) value(data map[string]any) (string, bool) {
	usage, _ := data["usage"].(map[string]any)
	for _, key := range x.keys {
		for _, v := range []any{data[key], usage[key], usage[strings.ReplaceAll(key, "-", "_")]} {
			if s, ok := scalar(v); ok {
				return s, true
			}
		}
	}
	return "", false
}

// scalar renders a value that fits on a line; a list as its length.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, v != ""
	case bool:
		return strconv.FormatBool(v), true
	case []any:
		return strconv.Itoa(len(v)), true
	case json.Number:
		if _, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return string(v), true
		}
	}
	f, ok := number(v)
	if !ok {
		return "", false
	}
	switch size := math.Abs(f); { // times have digits beyond their precision
	case size < 10: // scores among others
		f = math.Round(f*1000) / 1000
	case size < 1e15:
		f = math.Round(f*10) / 10
	}
	return strconv.FormatFloat(f, 'f', -1, 64), true
}

// clock returns the local time of day of a moment in milliseconds since 1970.
func clock(ms float64) string {
	const year9999 = 253_402_300_800_000
	if !(ms > 0 && ms < year9999) {
		return "--:--:--"
	}
	return time.UnixMilli(int64(ms)).Format(time.TimeOnly)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return printable(cut(s, maxExtra))
}

func quoteIfNeeded(s string) string {
	if strings.ContainsAny(s, " \"=") || printable(s) != s {
		return strconv.Quote(s)
	}
	return s
}
