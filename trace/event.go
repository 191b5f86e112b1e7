package trace

import (
	"encoding/json"
	"strconv"
)

// An Event is one line of a trace file.
type Event struct {
	Level   string `json:"level"`   // debug, info, warning, error or fatal
	Message string `json:"message"` // a short text
	Topic   string `json:"topic"`   // "stone"

	// Data is the content of the event, its type included. Numbers read from a file are
	// [json.Number], so that long ids and token counts keep their digits. It is nil when
	// the line has no data object.
	Data map[string]any `json:"data"`
}

// Type returns the event's type, such as "api-call", or "" if it has none.
func (e Event) Type() string { return e.text("event") }

// Timestamp returns the time of the event, in milliseconds since 1970, or 0 if it is not
// recorded.
func (e Event) Timestamp() float64 {
	ms, _ := number(e.Data["timestamp"])
	return ms
}

// AshlarName returns the name under "ashlar-name", else "agent-ashlar-name", else
// "tool-name", since types of events differ in the key they use; "" without any of them.
func (e Event) AshlarName() string {
	for _, key := range []string{"ashlar-name", "agent-ashlar-name", "tool-name"} {
		if name := e.text(key); name != "" {
			return name
		}
	}
	return ""
}

// TurnNumber returns the model's turn to which the event belongs, and whether it belongs
// to one.
func (e Event) TurnNumber() (int, bool) {
	f, ok := number(e.Data["turn-number"])
	if !ok || f < 0 || f > 1<<53 || float64(int(f)) != f {
		return 0, false
	}
	return int(f), true
}

func (e Event) text(key string) string {
	s, _ := e.Data[key].(string)
	return s
}

// number accepts numbers from a trace file and from a program that builds its own
// events.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 64)
		return f, err == nil
	case float64:
		return v, true
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	}
	return 0, false
}
