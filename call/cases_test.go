package call_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
)

// TestCases checks what needs no plan of the cases in the folder STONE_CASES:
// replies, roles, rates, and requests as far as they are refused before anybody
// is looked for.
func TestCases(t *testing.T) {
	dir := cmp.Or(os.Getenv("STONE_CASES"), "../../shared/spec/cases/calls")
	files, _ := filepath.Glob(filepath.Join(dir, "*.edn"))
	if len(files) == 0 {
		t.Skip("no case files in " + dir + "; STONE_CASES names another folder")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := edn.Read(data, edn.Limits{})
		if err != nil {
			t.Fatalf("%s:%v", file, err)
		}
		for _, c := range v.Elements() {
			kind, _ := c.Field("kind")
			check := map[string]func(*testing.T, edn.Value){
				"result": checkResult, "roles": checkRoles, "kpi": checkKPI, "request": checkRequest,
			}[kind.Text()]
			if check != nil {
				t.Run(field(c, "id").Text(), func(t *testing.T) { check(t, c) })
			}
		}
	}
}

// field returns what is under a path of names, nil if it is not there.
func field(v edn.Value, path ...string) edn.Value {
	for _, name := range path {
		v, _ = v.Field(name)
	}
	return v
}

// envelope is the text of a request or reply: under its key, or as JSON.
func envelope(c edn.Value, key string) []byte {
	if v, ok := c.Field(key); ok {
		return []byte(v.String())
	}
	return []byte(field(c, "json").Text())
}

func worldOf(t *testing.T, c edn.Value) *call.Applicator {
	app := &call.Applicator{}
	faults := form.ReadValue(c, func(v form.Value) {
		v.Map(func(m *form.Map) {
			m.AllowRest()
			if v, ok := m.Field("intents"); ok {
				app.Intents = call.ReadIntents(v)
			}
			if v, ok := m.Field("schemas"); ok {
				app.Schemas = call.ReadSchemas(v)
			}
		})
	})
	if err := faults.Err(); err != nil {
		t.Fatal(err)
	}
	return app
}

func checkResult(t *testing.T, c edn.Value) {
	app := worldOf(t, c)
	reply, err := call.ReadReply(envelope(c, "result"))
	if err == nil && reply.Type == call.Value {
		out, _ := app.Schema(app.Intents[field(c, "intent").Text()].Out)
		if out != nil {
			if bad := out.Validate(reply.Out); bad != nil {
				err = &call.Error{Type: call.SchemaInvalid, Message: bad.Error()}
			}
		}
	}
	failure := ""
	if e := (*call.Error)(nil); errors.As(err, &e) {
		failure = e.Type
	}
	if want := field(c, "expect", "failure").Text(); failure != want {
		t.Errorf("failure %q (%v), want %q", failure, err, want)
	}
	if ok, stated := field(c, "expect", "ok").Bool(); stated && ok != (err == nil) {
		t.Errorf("got %v, want ok %v", err, ok)
	}
}

func checkRoles(t *testing.T, c edn.Value) {
	var roles call.Roles
	var who call.Principal
	var effects, want []string
	faults := form.Read(c, func(m *form.Map) {
		m.AllowRest()
		v, _ := m.Field("roles")
		roles = call.ReadRoles(v)
		m.Map("principal", func(m *form.Map) { call.ReadPrincipal(m, &who) })
		m.NameSet("effects", &effects)
		m.Map("expect", func(m *form.Map) { m.AllowRest(); m.NameSet("denied", &want) })
	})
	if err := faults.Err(); err != nil {
		t.Fatal(err)
	}
	_, denied := roles.Allow(who, effects)
	if !slices.Equal(denied, want) {
		t.Errorf("denied %v, want %v", denied, want)
	}
	if ok, stated := field(c, "expect", "ok").Bool(); stated && ok != (len(denied) == 0) {
		t.Errorf("denied %v, want ok %v", denied, ok)
	}
}

func checkKPI(t *testing.T, c edn.Value) {
	counters, err := edn.ToJSON(field(c, "counters"))
	if err != nil {
		t.Fatal(err)
	}
	var tally call.Tally
	if err := json.Unmarshal(counters, &tally); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(tally.KPIs())
	if err != nil {
		t.Fatal(err)
	}
	want, err := edn.ToJSON(field(c, "expect"))
	if err != nil {
		t.Fatal(err)
	}
	var got, expected map[string]any
	if err := errors.Join(json.Unmarshal(text, &got), json.Unmarshal(want, &expected)); err != nil {
		t.Fatal(err)
	}
	for key := range expected {
		if diff := gocmp.Diff(expected[key], got[key]); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}

func checkRequest(t *testing.T, c edn.Value) {
	_, spec, err := call.ReadRequest(envelope(c, "request"))
	if err == nil {
		err = worldOf(t, c).CheckRequest(spec)
	}
	wantType, wantReason := field(c, "expect", "error").Text(), field(c, "expect", "reason").Text()
	if err == nil {
		if wantReason != "" && wantType == call.InvalidRequest {
			t.Logf("%s is for the check of the one-call plan to find", wantReason)
		}
		return
	}
	e := call.AsError(err)
	if e.Type != wantType || wantReason != "" && e.Reason() != wantReason {
		t.Errorf("got %v (reason %q), want %q for %q", err, e.Reason(), wantType, wantReason)
	}
}
