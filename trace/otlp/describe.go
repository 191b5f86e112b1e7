package otlp

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone/trace"
)

// describe adds the fields of an event to the span.
func (sp *span) describe(e trace.Event) {
	typ := e.Type()
	name := e.AshlarName()
	switch typ {
	case "run-start", "run-end":
		sp.operation(InvokeWorkflow, name)
		sp.Attrs.set(WorkflowName, name)
		sp.Attrs.set("stone.run", text(e, "trace-id"))
	case "agent-ashlar-start", "agent-ashlar-end":
		sp.operation(InvokeAgent, name)
		sp.genAI = true
	case "api-call", "api-response":
		sp.operation(Chat, text(e, "model"))
		sp.Kind, sp.genAI = clientKind, true
	case "tool-dispatch":
		sp.operation(ExecuteTool, text(e, "tool-name"))
		sp.Attrs.set(ToolType, "function")
		sp.genAI = true
	case "call-attempt":
		sp.Name = strings.TrimSpace("call-attempt " + text(e, "cap"))
		sp.genAI = true
	case "lane-start", "lane-end":
		sp.Name = strings.TrimSpace("lane " + name)
	case "ashlar-start", "ashlar-end":
		sp.Name = cmp.Or(sp.Name, name)
	}
	sp.Name = cmp.Or(sp.Name, typ, e.Message, "event")
	sp.Attrs.describe(e, sp.genAI, "elapsed", "latency-ms", "ok")
}

// operation gives the span its conventional name. A run keeps that name even if its
// pipeline is an agent.
func (sp *span) operation(name, of string) {
	if sp.closer == "run-end" {
		return
	}
	sp.Name = strings.TrimSpace(name + " " + of)
	sp.Attrs.set(OperationName, name)
}

// happened adds an event to the span.
func (sp *span) happened(e trace.Event, typ string, at nanoseconds) {
	if tellsFailure(e, typ) {
		sp.failure = failureOf(e)
	}
	if len(sp.Events) == maxEvents {
		sp.Dropped++
		return
	}
	ev := event{Time: at, Name: cmp.Or(typ, e.Message, "event")}
	ev.Attrs.describe(e, false)
	sp.Events = append(sp.Events, ev)
}

// places are the fields that identify the span of an event.
var places = []string{"event", "timestamp", "trace-id", "span-id", "parent-span-id"}

// describe adds the fields of the event, except those in places and in without.
func (a *attributes) describe(e trace.Event, named bool, without ...string) {
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		v := e.Data[key]
		if v == nil || v == "" || slices.Contains(places, key) || slices.Contains(without, key) {
			continue
		}
		name := Attribute(key, named)
		if reason, ok := v.(string); ok && name == FinishReasons {
			v = []string{reason}
		}
		a.set(name, v)
	}
}
