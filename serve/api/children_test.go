package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// roles is an Access whose callers have the roles of their token.
type roles struct{}

func (roles) Principal(r *http.Request) (who serve.Principal, err error) {
	who.Name = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, role := range strings.Split(who.Name, "-") {
		who.Roles = append(who.Roles, serve.Role(role))
	}
	return who, nil
}

// A run has a part of its work done on a server: its question is a question of the run, its answer and its result
// come back, and a grant needs a role.
func TestChildren(t *testing.T) {
	answer, said := dag.NewType[stone.Answer]("answer"), dag.NewType[string]("said")
	remote := stone.Seq("remote",
		stone.Ask("sure?", number, answer, func(n int) string { return "Sure?" }, stone.Choices("yes", "no")),
		stone.Func("say", answer, said, func(_ context.Context, a stone.Answer) (string, error) { return "said " + a.Response, nil }, stone.Effects("network")))
	server := servetest.Start(t, serve.Config{Access: roles{}, Pipelines: []serve.Pipeline{{Name: "remote", Ashlar: remote}}})
	for token, want := range map[string]string{"read-start-answer-grant": "", "read-start-answer": `needs the role "grant"`} {
		client := &api.Client{URL: server.URL, Token: token}
		p := stone.Seq("p", stone.Func0("make", number, func(context.Context) (int, error) { return len(token), nil }, stone.Effects()),
			journal.Elsewhere("far", remote, budget.Limits{USD: new(1.0)}, client.Children("remote")))
		j := memdb.New(t)
		cfg := stone.Config{RunID: "run", Grant: []string{"network"}, Recorder: journal.Keep(j, journal.Options{})}
		_, err := stone.Run(t.Context(), p, cfg)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", token, err, want)
			}
			continue
		}
		if !errors.Is(err, kind.Waiting) {
			t.Fatal(err)
		}
		questions, err := j.Questions(t.Context(), "run")
		if err != nil || len(questions) != 1 {
			t.Fatalf("%+v, %v", questions, err)
		}
		if err := journal.Answer(t.Context(), j, "run", questions[0].Path, ask.Answer{Response: "yes"}); err != nil {
			t.Fatal(err)
		}
		result, err := stone.Run(t.Context(), p, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := said.From(result.DAG); err != nil || got != "said yes" {
			t.Errorf("the result is %q, %v", got, err)
		}
		for run, err := range client.Runs(t.Context(), journal.Query{Labels: map[string]string{journal.Parent: "run"}}) {
			if err != nil || run.State != journal.Done {
				t.Errorf("the child %+v, %v", run, err)
			}
		}
	}
}
