package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/x/cel"
)

var itemType = dag.NewType[call.JSON]("broken/item")

// replies makes a capability that gives one answer after the other, the last one for ever.
func replies(id string, asked *[]string, outs ...string) call.Capability {
	n := 0
	return call.Capability{Metadata: call.Metadata{ID: id, Intents: []string{"a/b"}}, Invoke: func(context.Context, *call.Request) (*call.Reply, error) {
		*asked = append(*asked, id)
		n++
		return &call.Reply{Type: call.Value, Out: call.JSON(outs[min(n, len(outs))-1])}, nil
	}}
}

// A check that no answer of the schema could pass is found before anything runs. One whose error depends on the
// answer is a failed check.
func TestBrokenWithSchema(t *testing.T) {
	order, err := schema.Parse([]byte(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"note":{"type":"string"},"list":{"type":"array","items":{"type":"object","properties":{"q":{"type":"integer"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for check, want := range map[string]string{
		"out.n > 0":                     "",
		"out.m > 0":                     "out has no field m, did you mean n?",
		"out.n":                         "must be true or false",
		"out.n.contains('x')":           "no matching overload",
		"out.list.all(i, i.qty > 0)":    "i has no field qty",
		"out.note.startsWith('x')":      "!eval/must-failed at ask: c: expression",
		"out.list[7].q > 0":             "!eval/must-failed at ask: c: expression",
		"has(out.note) && out.note!=''": "!eval/must-failed at ask: c: has",
	} {
		var asked []string
		app := &call.Applicator{Registry: call.NewRegistry(replies("small", &asked, `{"n":1,"list":[]}`), replies("large", &asked, `{"n":1,"list":[]}`)),
			Intents: map[string]call.Intent{"a/b": {Out: "order"}}, Schemas: map[string]*schema.Schema{"order": order}}
		if err := cel.AddCheck(app, "c", check); err != nil {
			t.Fatal(err)
		}
		p := call.New("ask", itemType, call.Spec{Applicator: app, Intent: "a/b", Done: call.Done{Must: []string{"c"}}})
		found := stone.Validate(p, stone.Given{}).Errors()
		if inRun, ok := strings.CutPrefix(want, "!"); ok {
			_, err := stone.Run(t.Context(), p, stone.Config{})
			if len(found) > 0 || err == nil || !strings.Contains(err.Error(), inRun) || len(asked) != 2 {
				t.Errorf("%s: findings %v, error %v after %v, want %s", check, found, err, asked, inRun)
			}
			continue
		}
		if (len(found) == 0) != (want == "") || len(found) > 0 && !strings.Contains(found[0].Message, want) {
			t.Errorf("%s: %v, want %q", check, found, want)
		}
	}
}

// Without a schema, three answers that a check cannot judge for one reason show that it is broken: it fails
// closed and nobody else is asked.
func TestBrokenWithoutSchema(t *testing.T) {
	same := strings.Repeat(`{"n":1} `, 5)
	for _, test := range []struct{ answers, check, want string }{
		{same, "out.m > 0", "a b c | eval/check-broken"},
		{`{"n":1} {"n":1} {"m":1} {"n":1}`, "out.m > 0", "a b c | "},
		{`{"n":1} {"n":1} {"m":0} {"n":1} {"n":1}`, "out.m > 0", "a b c d e | eval/must-failed"}, // judged between them
		{`{"n":1} [7] {"n":1} [7] {"n":1}`, "out.m > 0", "a b c d e | eval/must-failed"},         // other reasons
		{same, "max-chars", "a | eval/check-broken"},                                             // no constraint, whatever the answer
	} {
		var asked []string
		var caps []call.Capability
		for i, answer := range strings.Fields(test.answers) {
			caps = append(caps, replies(string(rune('a'+i)), &asked, answer))
		}
		app := &call.Applicator{Registry: call.NewRegistry(caps...)}
		name := test.check
		if strings.Contains(name, "out") {
			name = "c"
			if err := cel.AddCheck(app, name, test.check); err != nil {
				t.Fatal(err)
			}
		}
		p := call.New("ask", itemType, call.Spec{Applicator: app, Intent: "a/b", Done: call.Done{Must: []string{name}}})
		_, err := stone.Run(t.Context(), p, stone.Config{})
		kind := ""
		if e, ok := errors.AsType[*call.Error](err); ok {
			kind = e.Type
		}
		if got := strings.Join(asked, " ") + " | " + kind; got != test.want {
			t.Errorf("%s: %s (%v), want %s", test.answers, got, err, test.want)
		}
	}
}

// The streak of a broken check counts over the runs of one program, so that an evaluation ends early.
func TestBrokenOverRuns(t *testing.T) {
	var asked []string
	app := &call.Applicator{Registry: call.NewRegistry(replies("a", &asked, `{"n":1}`), replies("b", &asked, `{"n":1}`))}
	if err := cel.AddCheck(app, "c", "out.m > 0"); err != nil {
		t.Fatal(err)
	}
	p := call.New("ask", itemType, call.Spec{Applicator: app, Intent: "a/b", Done: call.Done{Must: []string{"c"}}})
	var kinds []string
	for range 3 {
		_, err := stone.Run(t.Context(), p, stone.Config{})
		e, _ := errors.AsType[*call.Error](err)
		kinds = append(kinds, e.Type)
	}
	if got := strings.Join(append(kinds, asked...), " "); got != "eval/must-failed eval/check-broken eval/check-broken a b a a" {
		t.Error(got)
	}
}

// What a capability promises binds it, whatever its kind.
func TestOutSchemaBinds(t *testing.T) {
	short, err := schema.Parse([]byte(`{"type":"object","properties":{"v":{"type":"string"}},"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	loose, strict := replies("loose", &asked, `{"v":17}`), replies("strict", &asked, `{"v":"x"}`)
	loose.Out, strict.Out = "short", "short"
	app := &call.Applicator{Registry: call.NewRegistry(loose, strict), Schemas: map[string]*schema.Schema{"short": short}}
	p := call.New("ask", itemType, call.Spec{Applicator: app, Intent: "a/b"})
	result, err := stone.Run(t.Context(), p, stone.Config{})
	if err != nil || strings.Join(asked, " ") != "loose strict" || string(result.Node.Content()) != `{"v":"x"}` {
		t.Errorf("%v, %v", asked, err)
	}
	rec := call.RecordOf(result.Node)
	text, _ := json.Marshal(rec.Tried[0])
	if rec.Tried[0].Failure != reasons.SchemaInvalid {
		t.Errorf("%s", text)
	}
}

func TestDenied(t *testing.T) {
	roles := call.Roles{"process": {Any: []string{"ops", "admin"}}, "net": {Forbidden: []string{"guest"}}, "fs": {}}
	user := call.Principal{ID: "u", Roles: []string{"user", "guest"}}
	for e, want := range map[string]string{
		"process": `the effect "process" requires one of the roles ops, admin; the principal has only user, guest`,
		"net/x":   `the effect "net" is forbidden for the role guest, which the principal has`,
		"fs":      `the rule of the effect "fs" names no role, so nobody may have it`,
		"db":      "",
	} {
		if got := roles.Denied(user, e); got != want {
			t.Errorf("%s: %s, want %s", e, got, want)
		}
	}
}
