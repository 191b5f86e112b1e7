package call_test

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
)

func TestBuiltInChecks(t *testing.T) {
	long := strings.Repeat("All work and no play makes Jack a dull boy, and all play makes him a toy. ", 12)
	for _, tc := range []struct {
		check, constraints, out string
		want                    string // why it does not hold, or ""
	}{
		{"schema-valid", ``, `{"text":"x"}`, ""},
		{"non-empty", ``, `{"text":"x"}`, ""},
		{"non-empty", ``, `{"a":[1,{"text":"no"}],"b":"}\"{","text":" \n"}`, "is empty"},
		{"non-empty", ``, `{"content":"","n":1}`, "is empty"},
		{"non-empty", ``, `""`, "is empty"},
		{"non-empty", ``, `null`, "is empty"},
		{"non-empty", ``, `[]`, "is empty"},
		{"non-empty", ``, `{}`, "is empty"},
		{"non-empty", ``, `0`, ""},
		{"non-empty", ``, `"null"`, ""},
		{"max-chars", `{"max-chars":3}`, `{"text":"żół"}`, ""},
		{"max-chars", `{"max-chars":3}`, `"ab\ncd"`, "5 characters"},
		{"max-chars", `{"max-chars":3}`, `[1,2]`, "5 characters"},
		{"max-chars", `{"max-chars":"3"}`, `""`, "constraints.max-chars"},
		{"max-chars", ``, `""`, "needs constraints.max-chars"},
		{"json", ``, `{"text":"{\"a\":1}"}`, ""},
		{"json", ``, `{"a":1}`, ""},
		{"json", ``, `"{"`, "is not JSON"},
		{"regex", `{"regex":"^a+$"}`, `{"text":"aaa"}`, ""},
		{"regex", `{"regex":"^a+$"}`, `{"text":"aab"}`, "does not match"},
		{"regex", `{"regex":"("}`, `""`, "constraints.regex"},
		{"regex", `{}`, `""`, "needs constraints.regex"},
		{"no-repetition", ``, `{"text":"one two three"}`, ""},
		{"no-repetition", ``, `{"text":"` + long + `"}`, "repeats itself"},
		{"response-format", ``, `"of no conversation"`, ""},
		{"legal-move", ``, `"e2e4"`, "the part of package github.com/stonelayer/stone/x/solve/uci"},
	} {
		w := &world{}
		spec := call.Spec{Applicator: app(w.cap(answers(tc.out), call.Metadata{ID: "a"})), Done: call.Done{Must: []string{tc.check}}}
		if tc.constraints != "" {
			spec.Constraints = dag.Derive(dag.Nothing, func(struct{}) any { return call.JSON(tc.constraints) })
		}
		v := runCall(t.Context(), spec, call.Budget{}, stone.Config{})
		if why := v.rec.Error; tc.want == "" && v.err != nil || tc.want != "" && !strings.Contains(why, tc.want) {
			t.Errorf("%s of %s: %q, want %q", tc.check, tc.out, why, tc.want)
		}
	}
}

func TestCheckBy(t *testing.T) {
	for out, want := range map[string]string{
		`true`: "", `{"pass":true}`: "", `false`: "it does not hold", `{"pass":false,"why":"too long"}`: "too long",
		`{"score":1}`: "want true, false", `"great"`: "want true, false", `null`: "want true, false",
	} {
		w := &world{}
		app := app(w.cap(nil, call.Metadata{ID: "a"}), w.cap(answers(out), call.Metadata{ID: "b"}))
		app.Checks = map[string]call.Check{"x/fits": call.CheckBy("x/fits", app.Registry, "b")}
		spec := call.Spec{Applicator: app, Cap: "a", Done: call.Done{Must: []string{"x/fits"}}, Budget: call.Budget{Roundtrips: new(2)}}
		v := runCall(t.Context(), spec, call.Budget{}, stone.Config{})
		if why := v.rec.Error; want == "" && v.err != nil || want != "" && !strings.Contains(why, want) {
			t.Errorf("%s: %q, want %q", out, why, want)
		}
		wantCalls(t, w, "a", "b")
		spec.Budget.Roundtrips = new(1)
		if v := runCall(t.Context(), spec, call.Budget{}, stone.Config{}); v.failure != reasons.BudgetExhausted || !strings.Contains(v.rec.Error, "max-roundtrips") {
			t.Errorf("with one round trip: %s, %s", v.brief(), v.rec.Error)
		}
	}
}
