package call_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
)

func parseForm(t *testing.T, text string, read func(*form.Map)) []string {
	t.Helper()
	v, err := edn.ReadEither([]byte(text), edn.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	for _, f := range form.Read(v, read) {
		faults = append(faults, f.Kind+" "+f.Path)
	}
	return faults
}

func TestReadPolicy(t *testing.T) {
	yes, quarter, half, two, three := true, 0.25, 0.5, 2, 3
	var app call.Applicator
	faults := parseForm(t, `{:policy {:default {:done {:must #{:non-empty}} :retry {:same-cap-max 2} :fallback [:b :a]}
		:intents {:verse/write {:switch-on #{:x/y} :done {:score-min 0.5}
		                        :judge {:on true :w 0.25 :veto true :on-error :open :canary 0.5 :cap/id :judge/a
		                                :rubric "short" :max-attempts 3}}}}}`,
		func(m *form.Map) { form.Into(m, &app, "policy") })
	want := call.Policy{
		Default: call.Rules{Done: call.Done{Must: []string{"non-empty"}}, Retry: call.Retry{SameCapMax: &two}, Fallback: []string{"b", "a"}},
		Intents: map[string]call.Rules{"verse/write": {
			SwitchOn: []string{"x/y"}, Done: call.Done{ScoreMin: &half},
			Judge: call.Judge{On: &yes, Weight: &quarter, Veto: &yes, OnError: "open", Canary: &half, Cap: "judge/a", Rubric: "short", MaxAttempts: &three},
		}},
	}
	if diff := gocmp.Diff(want, app.Policy); diff != "" || faults != nil {
		t.Errorf("%v\n%s", faults, diff)
	}
}

func TestRulesFaults(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		read       func(*form.Map)
		want       []string
	}{
		{"policy", `{:policy {:default {:judge {:w 2 :on-error :shut}} :intents {:a {:done 1} "b" {}}}}`,
			func(m *form.Map) { form.Into(m, new(call.Applicator), "policy") },
			[]string{"out-of-range policy.default.judge.w", "unknown policy.default.judge.on-error", "invalid policy.intents.a.done", "invalid policy.intents"}},
		{"judge", `{:policy {:default {:judge {:max-attempts 0 :rubric [1]}}}}`,
			func(m *form.Map) { form.Into(m, new(call.Applicator), "policy") },
			[]string{"out-of-range policy.default.judge.max-attempts", "invalid policy.default.judge.rubric"}},
		{"routing", `{:routing {:fallback [:a] :done {}}}`,
			func(m *form.Map) { form.Into(m, new(call.Applicator), "routing") },
			[]string{"unknown-keys routing.done"}},
		{"intents", `{:intents {:a {:in-schema "x"} :b {:out :c}}}`,
			func(m *form.Map) { form.Into(m, new(call.Applicator), "intents") },
			[]string{"invalid intents.a.in-schema", "unknown-keys intents.b.out"}},
		{"schemas", `{:schemas {:a {"type" "objekt"} :b {"type" "object"} :res/text {}}}`,
			func(m *form.Map) { form.Into(m, new(call.Applicator), "schemas") },
			[]string{"invalid schemas.a", "duplicate schemas.res/text"}},
		{"roles", `{:roles {:fs/write {:any :crew} :net {:only #{:x}}}}`,
			func(m *form.Map) { form.Into(m, new(call.Roles)) },
			[]string{"invalid roles.fs/write.any", "unknown-keys roles.net.only"}},
		{"principal", `{:roles ["x"]}`,
			func(m *form.Map) { form.Into(m, new(call.Principal)) },
			[]string{"missing id", "invalid roles[0]"}},
	} {
		if diff := gocmp.Diff(tc.want, parseForm(t, tc.text, tc.read)); diff != "" {
			t.Errorf("%s:\n%s", tc.name, diff)
		}
	}
}

func TestRoles(t *testing.T) {
	roles := call.Roles{
		"any":       {Any: []string{"a", "b"}},
		"all":       {All: []string{"a", "b"}},
		"either":    {Any: []string{"c"}, All: []string{"a", "b"}},
		"forbidden": {Any: []string{"a"}, Forbidden: []string{"z"}},
		"but":       {Forbidden: []string{"z"}},
		"nobody":    {Any: []string{}},
		"silent":    {},
	}
	all := []string{"unruled", "none", "any", "all", "either", "forbidden", "but", "nobody", "silent"}
	for _, tc := range []struct{ roles, granted, grant []string }{
		{nil, []string{"but"}, []string{"but", "unruled"}},
		{[]string{"a"}, []string{"any", "but", "forbidden"}, []string{"any", "but", "forbidden", "unruled"}},
		{[]string{"a", "b"}, []string{"all", "any", "but", "either", "forbidden"}, []string{"all", "any", "but", "either", "forbidden", "unruled"}},
		{[]string{"c"}, []string{"but", "either"}, []string{"but", "either", "unruled"}},
		{[]string{"a", "z"}, []string{"any"}, []string{"any", "unruled"}},
	} {
		who := call.Principal{ID: "u", Roles: tc.roles}
		granted, denied := roles.Allow(who, all)
		if diff := gocmp.Diff(tc.granted, granted); diff != "" || len(granted)+len(denied) != len(all)-1 {
			t.Errorf("%v: denied %v\n%s", tc.roles, denied, diff)
		}
		if diff := gocmp.Diff(tc.grant, roles.Grant(who, all)); diff != "" {
			t.Errorf("%v: %s", tc.roles, diff)
		}
	}
	if got := call.Roles(nil).Grant(call.Principal{}, nil); got == nil {
		t.Error("a nil grant would grant everything")
	}
}

func TestBuiltInSchemas(t *testing.T) {
	app := &call.Applicator{}
	for _, tc := range []struct {
		name, data string
		ok         bool
	}{
		{"", `1`, true},
		{"req/any", `1`, true},
		{"res/any", `null`, true},
		{"res/text", `{"text": "a"}`, true},
		{"res/text", `{"content": "a", "text": 3}`, true},
		{"res/text", `{"prompt": "a"}`, false},
		{"res/text", `{"text": " \n"}`, false},
		{"res/text", `"a"`, false},
		{"req/text", `{"prompt": "a"}`, true},
		{"req/text", `{}`, false},
		{"req/eval", `{"intent": "a/b", "input": {}, "out": null, "done": {"must": ["x"], "score-min": 0.5}}`, true},
		{"req/eval", `{"intent": "a/b"}`, false},
		{"res/eval", `{"score": 0.5, "reasons": ["short"]}`, true},
		{"res/eval", `{"score": 17}`, true},
		{"res/eval", `{"score": "great"}`, false},
	} {
		s, ok := app.Schema(tc.name)
		if !ok {
			t.Fatalf("no schema %q", tc.name)
		}
		if s == nil {
			continue
		}
		if err := s.Validate(t.Context(), []byte(tc.data)); (err == nil) != tc.ok {
			t.Errorf("%s %s: %v", tc.name, tc.data, err)
		}
	}
	if _, ok := app.Schema("res/nowhere"); ok {
		t.Error("found an undefined schema")
	}
}
