package spans

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/event"
)

// title returns the name of the span that an event starts or ends, and the span's operation according to the semantic
// conventions. The operation is "" if the conventions define none.
func title(e event.Event) (name, operation string) {
	of := e.Name
	switch d := e.Data.(type) {
	case event.RunStarted, event.RunEnded:
		operation = InvokeWorkflow
	case event.AgentStarted, event.AgentEnded:
		operation = InvokeAgent
	case event.ModelRequest:
		operation, of = Chat, d.Model
	case event.ModelResponse:
		operation, of = Chat, d.Model
	case event.ToolStarted:
		operation, of = ExecuteTool, d.Tool
	case event.ToolDone:
		operation, of = ExecuteTool, d.Tool
	case event.CallAttempt:
		return strings.TrimSpace("call-attempt " + d.Cap), ""
	case event.LaneStarted, event.LaneEnded:
		return strings.TrimSpace("lane " + e.Name), ""
	case event.StepStarted, event.StepDone:
		return cmp.Or(e.Name, e.Type()), ""
	default:
		return cmp.Or(e.Type(), "event"), ""
	}
	return strings.TrimSpace(operation + " " + of), operation
}

// describe adds the fields of an event and the conventional attributes to the span.
func (sp *span) describe(e event.Event, more ...slog.Attr) {
	known := more
	name, operation := title(e)
	switch operation {
	case "":
		sp.genAI = sp.genAI || sp.of == anAttempt
	case InvokeWorkflow:
		known = append(known, slog.String(WorkflowName, e.Name), slog.String("stone.run", e.Run))
	case ExecuteTool:
		known = append(known, slog.String(ToolType, "function"))
		fallthrough
	default:
		sp.genAI = true
	}
	if operation != "" {
		sp.SetName(name)
		known = append(known, slog.String(OperationName, operation))
	}
	sp.Set(append(known, attributes(e, sp.genAI, timing)...))
}

// timing lists the fields that a span already contains in another form.
var timing = []string{"elapsed", "latency", "ok", "conversation", "provider", "server"}

// providers maps protocols to their names in the conventions, where these differ.
var providers = map[string]string{"gemini": "gcp.gemini"}

// asked returns the attributes that describe the server to which a request is sent.
func asked(d event.ModelRequest) (attrs []slog.Attr) {
	if d.Provider != "" {
		attrs = append(attrs, slog.String(ProviderName, cmp.Or(providers[d.Provider], d.Provider)))
	}
	host, port, err := net.SplitHostPort(d.Server)
	if err != nil {
		host = d.Server
	}
	if host != "" {
		attrs = append(attrs, slog.String(ServerAddress, host))
	}
	if n, err := strconv.ParseInt(port, 10, 64); err == nil {
		attrs = append(attrs, slog.Int64(ServerPort, n))
	}
	return attrs
}

// attributes returns the non-empty fields of an event, except those in without, as attributes with conventional names.
func attributes(e event.Event, genAI bool, without []string) []slog.Attr {
	var attrs []slog.Attr
	if e.Request != "" {
		attrs = append(attrs, slog.String(attribute("request-id", genAI), e.Request))
	}
	for _, a := range e.Attrs() {
		name := attribute(a.Key, genAI)
		switch v := a.Value; {
		case slices.Contains(without, a.Key) || empty(v):
			continue
		case name == FinishReasons:
			a.Value = slog.AnyValue([]string{v.String()})
		case v.Kind() == slog.KindDuration:
			a.Value = slog.Float64Value(float64(v.Duration()) / float64(time.Millisecond))
		}
		attrs = append(attrs, slog.Attr{Key: name, Value: a.Value})
	}
	return attrs
}

func empty(v slog.Value) bool {
	switch v.Kind() {
	case slog.KindString:
		return v.String() == ""
	case slog.KindAny:
		raw, ok := v.Any().(json.RawMessage)
		return v.Any() == nil || ok && string(raw) == "null"
	}
	return false
}
