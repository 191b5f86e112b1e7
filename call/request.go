package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/reasons"
)

// proto is the version of the envelope protocol.
const proto = 1

// MaxEnvelope is the maximum size of a request or reply, in bytes. Values can be nested up to 512 levels deep.
const MaxEnvelope = 8 << 20

var envelopeLimits = edn.Limits{Bytes: MaxEnvelope, Depth: 512}

// ReadRequest decodes the envelope of a request, in EDN or JSON. The Input, Context and Constraints of the Spec are constants,
// which read nothing from a DAG. The Applicator of the Spec is nil. The error is an *Error of type InvalidRequest. The error
// names the first fault (see Error.Reason) and lists all faults in its details. Applicator.CheckRequest and stone.Validate check
// whether the request can be answered.
func ReadRequest(data []byte) (Trace, Spec, error) {
	v, err := edn.ReadEither(data, envelopeLimits)
	if err != nil {
		f := form.Fault{Kind: "malformed", Message: err.Error()}
		if at := (*edn.Error)(nil); errors.As(err, &at) {
			f = form.Fault{Kind: f.Kind, Line: at.Line, Column: at.Column, Message: at.Reason}
		}
		return Trace{}, Spec{}, refuse(form.Faults{f})
	}
	var trace Trace
	var spec Spec
	faults := form.Read(v, func(m *form.Map) {
		if !readProto(m) {
			m.AllowRest() // the fields of another protocol are unknown
			return
		}
		m.Need("trace", "task", "input")
		m.At("trace").Map(trace.read)
		m.At("task").Map(func(m *form.Map) {
			m.Need("intent")
			m.At("intent").Name(&spec.Intent)
			checkName(m, "intent", spec.Intent)
			readParts(m, &spec, "requires", "dispatch")
		})
		readObject(m, "input", &spec.Input)
		readObject(m, "context", &spec.Context)
		readObject(m, "constraints", &spec.Constraints)
		readParts(m, &spec, "done", "budget", "effects", "cache")
		readStack(m, &spec.Stack)
	})
	if len(faults) > 0 {
		return Trace{}, Spec{}, refuse(faults)
	}
	return trace, spec, nil
}

// readProto reports whether the envelope belongs to this version of the protocol.
func readProto(m *form.Map) bool {
	m.Need("proto")
	v, ok := m.Field("proto")
	if !ok {
		return true // the other fields are checked too
	}
	if n, ok := v.EDN().Int64(); !ok || n != proto {
		v.Fault("unsupported", "expected the integer %d, the supported protocol", proto)
		return false
	}
	return true
}

func (t *Trace) read(m *form.Map) {
	m.Need("id")
	if m.At("id").Text(&t.ID) && strings.TrimSpace(t.ID) == "" {
		m.FaultAt("id", form.Invalid, "expected a non-blank string")
	}
	checkName(m, "id", t.ID)
	m.At("turn").Int(&t.Turn, 0, math.MaxInt)
}

// checkName rejects a name that is too long to be stored with a run.
func checkName(m *form.Map, key, name string) {
	if err := bounds.CheckName("the "+key, name); err != nil {
		m.FaultAt(key, form.Invalid, "%v", err)
	}
}

// readObject reads a field that must be a map as a constant for a Spec.
func readObject(m *form.Map, key string, to *dag.Reader[any]) {
	v, ok := m.Field(key)
	if !ok {
		return
	}
	if v.EDN().Kind() != edn.KindMap {
		v.Fault(form.Invalid, "expected a map")
		return
	}
	var data JSON
	if v.JSON(&data) {
		*to = dag.ReaderFunc(func(dag.DAG) (any, error) { return data, nil })
	}
}

// A refusal is one fault of a request, in the details of the error.
type refusal struct {
	Reason     string `json:"reason"`
	Path       string `json:"path,omitempty"`
	Line       int    `json:"line,omitempty"`
	Column     int    `json:"column,omitempty"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"`
	denied     string // the missing effect, if the fault is a missing effect
}

func refuse(faults form.Faults) *Error {
	all := make([]refusal, len(faults))
	for i, f := range faults {
		all[i] = refusal{Reason: reasonOf(f), Path: f.Path, Line: f.Line, Column: f.Column, Message: f.Message, Suggestion: f.Suggestion}
	}
	return refuseFor(faults.Error(), all...)
}

func refuseFor(message string, all ...refusal) *Error {
	details := struct {
		Reason string    `json:"reason"`
		Faults []refusal `json:"faults"`
		Denied []string  `json:"denied,omitempty"`
	}{Reason: all[0].Reason, Faults: all}
	for _, r := range all {
		if r.denied != "" {
			details.Denied = append(details.Denied, r.denied)
		}
	}
	// Strings and numbers can always be encoded.
	data, _ := json.Marshal(details)
	e := &Error{Type: reasons.InvalidRequest, Message: all[0].Reason + ": " + message, Details: data}
	if len(details.Denied) > 0 {
		e.Cause = &Error{Type: reasons.ForbiddenEffect, Message: "not granted: " + strings.Join(details.Denied, ", ")}
	}
	return e
}

// refuseRequest returns the error that rejects a request because of findings about its
// call, or nil if no finding is an error.
func refuseRequest(findings stone.Findings) error {
	var all []refusal
	for _, f := range findings.Errors() {
		r := refusal{Reason: string(f.Type), Path: "task", Message: f.Message, Suggestion: f.Suggestion}
		if f.Type == "effect-not-granted" {
			r.Path, r.denied = "effects", f.Queried
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil
	}
	return refuseFor(all[0].Message, all...)
}

// Reason returns a code for the reason why a request was rejected, such as "trace/missing". For any other error, it returns "".
func (e *Error) Reason() string {
	var details struct {
		Reason string `json:"reason"`
	}
	if e.Type != reasons.InvalidRequest || json.Unmarshal(e.Details, &details) != nil {
		return ""
	}
	return details.Reason
}

var index = regexp.MustCompile(`\[\d+\]`)

// reasonOf returns a code for a fault, which consists of the envelope part, the path within it and the kind of fault:
// trace/missing, done/score-min-out-of-range, requires/unknown-keys. Each field of the task counts as a part.
func reasonOf(f form.Fault) string {
	path := f.Path
	if f.Kind == form.UnknownKey {
		path = f.In
	}
	if rest, ok := strings.CutPrefix(path, "task."); ok {
		path = rest
	}
	part, rest, _ := strings.Cut(index.ReplaceAllString(path, ""), ".")
	if part == "" {
		part = "request"
	}
	what := f.Kind
	if rest != "" {
		what = strings.NewReplacer(".", "-", "/", "-", "?", "").Replace(rest) + "-" + what
	}
	return part + "/" + what
}

// CheckRequest returns an error if the intent of the request is unknown, or if its input does not fit the intent's schema. Use it
// before any capability is invoked. If Intents is nil, it returns nil. The error is of type InvalidRequest.
func (app *Applicator) CheckRequest(s Spec) error {
	if app.Intents == nil {
		return nil
	}
	intent := app.Intents[s.Intent]
	if !app.knows(s.Intent) {
		message := fmt.Sprintf("unknown intent %q", s.Intent)
		return refuseFor(message, refusal{Reason: "intent/not-supported", Path: "task.intent", Message: message})
	}
	if intent.In == "" || s.Input == nil {
		return nil
	}
	in, ok := app.Schema(intent.In)
	if !ok {
		message := fmt.Sprintf("the intent %q has the undefined in-schema %q", s.Intent, intent.In)
		return refuseFor(message, refusal{Reason: "unknown-schema", Path: "task.intent", Message: message})
	}
	input, err := s.Input.From(dag.DAG{})
	if err == nil {
		var data []byte
		if data, err = json.Marshal(input); err == nil {
			err = in.Validate(context.Background(), data)
		}
	}
	if err != nil {
		message := fmt.Sprintf("expected %s: %v", intent.In, err)
		return refuseFor(message, refusal{Reason: reasons.InputInvalid, Path: "input", Message: message})
	}
	return nil
}

// MarshalJSON returns the envelope of a request, for capabilities outside the process. The envelope contains the remaining
// budget, but not the capability, the number of the attempt or the key.
func (r Request) MarshalJSON() ([]byte, error) {
	type allowed struct {
		Allowed []string `json:"allowed"`
	}
	type task struct {
		Intent   string   `json:"intent"`
		Requires Requires `json:"requires,omitzero"`
	}
	out := struct {
		Proto       int     `json:"proto"`
		Trace       Trace   `json:"trace"`
		Task        task    `json:"task"`
		Input       JSON    `json:"input"`
		Context     JSON    `json:"context,omitempty"`
		Constraints JSON    `json:"constraints,omitempty"`
		Done        Done    `json:"done,omitzero"`
		Budget      Budget  `json:"budget,omitzero"`
		Effects     allowed `json:"effects"`
		Cache       Cache   `json:"cache,omitzero"`
		Stack       []Frame `json:"stack,omitempty"`
	}{
		proto, r.Trace, task{r.Intent, r.Requires}, r.Input, r.Context, r.Constraints, r.Done, r.Budget,
		allowed{r.Effects}, r.Cache, r.Stack,
	}
	if len(r.Input) == 0 {
		out.Input = JSON("{}")
	}
	if len(r.Effects) == 0 {
		out.Effects.Allowed = []string{"none"}
	}
	return json.Marshal(out)
}
