package call_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/terms"
)

// told writes verdicts in one line.
func told(all []call.Verdict) string {
	var b strings.Builder
	for _, v := range all {
		fmt.Fprintf(&b, "%s %s %s", v.As, v.By, v.State)
		if v.Score != nil {
			fmt.Fprintf(&b, " %v", *v.Score)
		}
		if v.Why != "" {
			fmt.Fprintf(&b, " (%s)", v.Why)
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// The record of a call has its strategy and the verdict of every check, including passed and
// skipped ones.
func TestVerdicts(t *testing.T) {
	w, on := &world{}, true
	app := app(w.cap(nil, call.Metadata{ID: "a"}), w.cap(nil, call.Metadata{ID: "b"}),
		grader(new([]*call.Request), answers(`{"score": 0.75, "reasons": ["short", "dry"]}`)))
	app.Checks = map[string]call.Check{"by-b": holds("b"), "by-a": holds("a"), "program": holds("a", "b")}
	app.CheckFacts = map[string]call.CheckFacts{"program": {Costly: true}}
	app.Policy.Default.Judge.On = &on
	spec := call.Spec{Applicator: app, Dispatch: call.Dispatch{Candidates: []string{"a", "b"}},
		Done: call.Done{Must: []string{"by-b"}, Should: []string{"by-a", "program"}}, Admit: call.Done{Should: []string{"non-empty"}}}
	v := runCall(t.Context(), spec, call.Budget{}, stone.Config{})
	if v.brief() != "b" || v.rec.Strategy != call.Cascade || len(v.rec.Tried) != 2 {
		t.Fatalf("%s by %s after %d attempts: %v", v.brief(), v.rec.Strategy, len(v.rec.Tried), v.err)
	}
	for i, want := range []string{
		"must by-b failed (it does not hold); should by-a passed; should program skipped",
		"must by-b passed; should by-a failed (it does not hold); should program passed; judge judge/j passed 0.75 (short; dry)",
	} {
		if got := told(v.rec.Tried[i].Verdicts); got != want {
			t.Errorf("attempt %d: %s\nwant %s", i, got, want)
		}
	}
	if got := told(v.rec.Input.Verdicts); got != "should non-empty failed (the input is empty)" {
		t.Errorf("at the door: %s", got)
	}
}

// Verdicts are bounded: the failed ones are kept, and no part of a secret remains.
func TestVerdictsAreBounded(t *testing.T) {
	const secret = "a secret of twenty-four."
	secrets, err := redact.New(secret)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{}
	app := app(w.cap(nil, call.Metadata{ID: "a"}))
	app.Checks = map[string]call.Check{"long": func(context.Context, call.Subject) error {
		return errors.New(strings.Repeat("x", 290) + secret + strings.Repeat("y", 1000))
	}}
	var should []string
	for i := range 50 {
		name := fmt.Sprintf("check-%d", i)
		app.Checks[name] = holds("a")
		should = append(should, name)
	}
	v := runCall(redact.With(t.Context(), secrets), call.Spec{Applicator: app, Done: call.Done{Should: append(should, "long")}}, call.Budget{}, stone.Config{})
	got := v.rec.Tried[0].Verdicts
	if len(got) != 32 || got[0].By != "long" || got[1].By != "check-0" {
		t.Fatalf("%d verdicts: %s", len(got), told(got))
	}
	if why := got[0].Why; len(why) > 310 || strings.Contains(why, "a sec") || !strings.HasSuffix(why, "…") {
		t.Errorf("%d bytes: %s", len(why), why)
	}
}

// The content of a node of type Failed, and the schema of that type, are part of keys in journals, so
// neither has verdicts.
func TestVerdictsAreInNoKey(t *testing.T) {
	w := &world{}
	app := app(w.cap(nil, call.Metadata{ID: "a"}))
	app.Checks = map[string]call.Check{"by-b": holds("b")}
	v := runCall(t.Context(), call.Spec{Applicator: app, Done: call.Done{Must: []string{"by-b"}}, Dispatch: call.Dispatch{AllowFailure: true}}, call.Budget{}, stone.Config{})
	const want = `{"attempts":1,"cap/id":"a","error":"by-b: it does not hold","failure/type":"eval/must-failed","intent":"mail/sort","must-failed":["by-b"],` +
		`"out":{"text":"a"},"score":1,"tried":[{"attempt":1,"cap/id":"a","error":"by-b: it does not hold","failure/type":"eval/must-failed",` +
		`"must-failed":["by-b"],"score":1,"usage":{"attempts":1,"cap/id":"a"}}],"usage":{"attempts":1,"cap/id":"a"}}`
	if v.err != nil || v.out != want {
		t.Errorf("%s, want %s (%v)", v.out, want, v.err)
	}
	if text := string(call.Failed(out).Schema().JSON()); strings.Contains(strings.ToLower(text), "verdict") || strings.Contains(text, "strategy") {
		t.Error(text)
	}
}

// Records of older journals have neither strategy nor verdicts.
func TestOldRecord(t *testing.T) {
	r := call.RecordIn(map[string]string{terms.CallNote: `{"intent":"mail/sort","attempts":1,"must-failed":["by-b"],"tried":[{"cap/id":"a","attempt":1}],"input":{"score":1}}`})
	if r == nil || r.Strategy != "" || r.Tried[0].Verdicts != nil || r.Input.Verdicts != nil || r.MustFailed[0] != "by-b" {
		t.Errorf("%+v", r)
	}
	for _, text := range []string{"", "[]", "{", `{"verdicts":[null,[{"by":"x"}],[{"by":"y"}]],"tried":[{}]}`, "null"} {
		_ = call.RecordIn(map[string]string{terms.CallNote: text}) // it must not panic
	}
}
