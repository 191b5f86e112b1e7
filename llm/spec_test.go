package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
)

// TestFits compares requests with a table: what cannot fit is not sent, by no model.
func TestFits(t *testing.T) {
	user := func(parts ...llm.Part) llm.Request {
		return llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: append(parts, llm.Part{Text: "hi"})}}}
	}
	media := func(typ string) llm.Request {
		return user(llm.Part{Media: &llm.Media{Type: typ, Data: []byte("\x89PNG\r\n\x1a\n")}})
	}
	with := func(edit func(*llm.Request)) llm.Request { r := user(); edit(&r); return r }
	for name, test := range map[string]struct {
		spec llm.Spec
		req  llm.Request
		want string // "" if it is sent
	}{
		"unknown":      {llm.Spec{}, media("image/png"), ""},
		"it can":       {llm.Spec{Can: []string{"images", "tools"}}, media("image/png"), ""},
		"no images":    {llm.Spec{Can: []string{"tools"}}, media("image/png"), "the request needs the ability images, but the model has only tools"},
		"nothing":      {llm.Spec{Can: []string{}}, media("application/pdf"), "the request needs the ability files, but the model has only none"},
		"no audio":     {llm.Spec{Can: []string{}}, media("audio/wav"), "the request needs the ability audio, but the model has only none"},
		"no tools":     {llm.Spec{Can: []string{"images"}}, with(func(r *llm.Request) { r.Tools = []llm.Tool{{Name: "t"}} }), "the request needs the ability tools, but the model has only images"},
		"no schema":    {llm.Spec{Can: []string{}}, with(func(r *llm.Request) { r.ResponseFormat = &llm.Format{Schema: json.RawMessage(`{}`)} }), ""}, // it is told
		"no thinking":  {llm.Spec{Can: []string{}}, with(func(r *llm.Request) { r.Params.Effort = "high" }), "the request needs the ability thinking, but the model has only none"},
		"only text":    {llm.Spec{Can: []string{}}, with(func(r *llm.Request) { r.Params.Effort = "none" }), ""},
		"it is full":   {llm.Spec{Window: 2}, with(func(r *llm.Request) { r.System = "12345678" }), "the request has about 3 tokens, more than the window of 2"},
		"it is enough": {llm.Spec{Window: 4}, with(func(r *llm.Request) { r.System = "12345678"; r.MaxTokens = 100 }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{steps: []step{{status: 200, body: []string{helloAll}}}}
			m := openai.New(openai.Config{Model: "m", URL: "http://test.invalid", HTTPClient: &http.Client{Transport: s}})
			var asked llm.Info
			ctx := llm.WithTable(t.Context(), func(i llm.Info) llm.Spec { asked = i; return test.spec })
			_, err := llm.Collect(ctx, m, &test.req)
			unfit := (*llm.UnfitError)(nil)
			switch {
			case test.want == "" && (err != nil || len(s.requests) != 1):
				t.Errorf("%d requests, %v", len(s.requests), err)
			case test.want != "" && (!errors.As(err, &unfit) || err.Error() != "llm: m cannot answer the request: "+test.want || len(s.requests) != 0 || llm.Retryable(err)):
				t.Errorf("%d requests, %v, want %s", len(s.requests), err, test.want)
			}
			if asked.Model != "m" || asked.Provider != "openai" || !strings.HasPrefix(asked.Endpoint, "http://test.invalid/") {
				t.Errorf("the table was asked about %+v", asked)
			}
			if test.req.MaxTokens > 0 && !strings.Contains(s.requests[0], `"max_tokens":1,`) {
				t.Errorf("the answer is not bounded by the window: %s", s.requests[0])
			}
			other := connect("openai", s, nil)
			if err := llm.CheckFit(ctx, llm.Fallback(m, other), &test.req); (err != nil) != (test.want != "") {
				t.Errorf("a Fallback of models that are alike: %v", err)
			}
		})
	}
}

// TestFallbackFits asks the next model when the first one cannot answer.
func TestFallbackFits(t *testing.T) {
	s := &server{steps: []step{{status: 200, body: []string{helloAll}}}}
	model := func(name string) llm.Model {
		return openai.New(openai.Config{Model: name, URL: "http://test.invalid", HTTPClient: &http.Client{Transport: s}})
	}
	ctx := llm.WithTable(t.Context(), func(i llm.Info) llm.Spec { return llm.Spec{Window: len(i.Model)} })
	m := llm.Fallback(model("m"), model("much-larger"))
	req := &llm.Request{Messages: []llm.Message{llm.User("hello world")}}
	if err := llm.CheckFit(ctx, m, req); err != nil {
		t.Error(err)
	}
	reply, err := llm.Collect(ctx, m, req)
	if err != nil || reply.Text != "Hello world" || len(s.requests) != 1 || !strings.Contains(s.requests[0], "much-larger") {
		t.Errorf("%+v, %v after %d requests", reply, err, len(s.requests))
	}
}

// TestTableLimits has models share the limits of the table, except for one that has a Limiter of its own.
func TestTableLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{steps: []step{{status: 200, body: []string{helloAll}}}}
		shared := limit.New(limit.Limits{RequestsPerMinute: 1})
		ctx := llm.WithTable(t.Context(), func(llm.Info) llm.Spec { return llm.Spec{Limiter: shared} })
		begin := time.Now()
		after := func(m llm.Model) time.Duration {
			if _, _, err := ask(ctx, m); err != nil {
				t.Error(err)
			}
			return time.Since(begin).Round(time.Second)
		}
		first, own, second := after(connect("openai", s, nil)), after(connect("openai", s, new(limit.Limiter))), after(connect("openai", s, nil))
		if first != 0 || own != 0 || second != time.Minute {
			t.Errorf("answered after %v, %v and %v", first, own, second)
		}
		if _, err := llm.Collect(context.Background(), connect("openai", s, nil), &llm.Request{Messages: []llm.Message{llm.User("x")}}); err != nil {
			t.Error(err)
		}
	})
}
