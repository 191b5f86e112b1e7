package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

const secret = `correct "horse" <battery> & \staple`

// mark replaces a secret. It is the same for all secrets, because a weak secret could be guessed from a digest.
const mark = "[redacted]"

func testSecrets(t *testing.T, j tested) {
	const token = "0123456789abcdef"
	var stepped string
	p := stone.Seq("all",
		stone.New("tells", draft, func(ctx context.Context, _ dag.DAG) (string, error) {
			if err := journal.Secret(ctx, token); err != nil {
				return "", err
			}
			got, err := stone.Step(ctx, "step", nil, func(context.Context, any) (string, error) {
				nested, err := json.Marshal(map[string]string{"key": secret})
				return "token " + token + string(nested), err
			})
			stepped, _, _ = strings.Cut(got, "{")
			return "the password is " + secret, err
		}),
		stone.Rescue("saved", stone.Func0("fails", final, func(context.Context) (string, error) { return "", stone.Fail("k", "bad key %s", token) }),
			stone.New("heal", final, func(_ context.Context, d dag.DAG) (string, error) {
				failure, err := dag.Failure.From(d)
				return failure.Reason, err
			}, stone.Queries(dag.Failure))),
	)
	result := mustRun(t, j, p, journal.Options{Secrets: []string{secret}})
	again := mustRun(t, j.open(), p, journal.Options{Secrets: []string{secret}})
	if stepped != "token "+mark {
		t.Errorf("Step returned %q, want the mark", stepped)
	}
	if got := result.Node.Text(); got != "bad key "+mark || again.Node.ID() != result.Node.ID() {
		t.Errorf("the result is %q, resumed it is %q; want the mark in both", got, again.Node.Text())
	}
	d, err := j.DAG(t.Context(), "run")
	must(t, err)
	if diff := cmp.Diff(nodes(t, result.DAG), nodes(t, d)); diff != "" {
		t.Errorf("the journal has other nodes (-want +got):\n%s", diff)
	}
	steps, err := j.Steps(t.Context(), "run")
	must(t, err)
	for _, s := range steps {
		rec, err := j.Record(t.Context(), "run", s.Path, s.Kind)
		must(t, err)
		text, err := json.Marshal(rec)
		must(t, err)
		if strings.Contains(string(text), token) || strings.Contains(string(text), "horse") {
			t.Errorf("the record of %s holds a secret: %s", s.Path, text)
		}
	}
}

func testKeptSecrets(t *testing.T, j tested) {
	p := stone.Func0("a", draft, func(context.Context) (string, error) { return "x", nil })
	input, err := draft.Append(dag.DAG{}, secret)
	must(t, err)
	for _, c := range []struct {
		input dag.DAG
		opts  journal.Options
		want  string
	}{
		{input, journal.Options{Secrets: []string{secret}}, "of the input contains a secret"},
		{dag.DAG{}, journal.Options{Secrets: []string{"passphrase"}, Source: []byte(`["passphrase"]`)}, "Options.Source contains a secret"},
		{dag.DAG{}, journal.Options{Secrets: []string{"short"}}, "a secret has 5 bytes: want at least 8"},
	} {
		cfg := config()
		cfg.Input = c.input
		_, err := stone.Run(t.Context(), p, kept(cfg, j, c.opts))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Run: %v, want %q", err, c.want)
		}
		if _, err := j.Find(t.Context(), "run"); !errors.Is(err, journal.ErrNoRun) {
			t.Errorf("Find: %v, want that nothing was started", err)
		}
	}
}

func testIncremental(t *testing.T, j tested) {
	var c counter
	pipeline := func(topic, version string, extra ...stone.Ashlar) stone.Ashlar {
		return stone.Seq("all", append([]stone.Ashlar{
			c.leaf("topic", draft, func(int) (string, error) { return topic, nil }),
			stone.Func("title", draft, final, func(_ context.Context, s string) (string, error) {
				c.add("title")
				return strings.ToUpper(s[:1]) + version, nil
			}, stone.Reusable(), stone.Version(version)),
			stone.Func("length", draft, item, func(_ context.Context, s string) (int, error) { return c.add("length"), nil }),
		}, extra...)...)
	}
	for _, r := range []struct {
		id, reuse string
		pipeline  stone.Ashlar
	}{
		{"one", "", pipeline("stone", "1")},
		{"two", "one", pipeline("stone", "1")},
		{"three", journal.AnyRun, pipeline("stone", "2")},
		{"four", "three", pipeline("marble", "2", c.leaf("more", draft, ok))},
	} {
		cfg := config()
		cfg.RunID = r.id
		_, err := stone.Run(t.Context(), r.pipeline, kept(cfg, j, journal.Options{Reuse: r.reuse}))
		must(t, err)
	}
	c.want(t, "length:4 more:1 title:3 topic:4")
	for _, d := range []struct{ a, b, want string }{
		{"one", "one", ""},
		{"one", "two", "all/length: it returned another result for the same input"},
		{"two", "three", "all/title: *version*\nall/length: it returned another result for the same input"},
		{"three", "four", "all/topic: it returned another result for the same input\n" +
			"all/title: it reads another \"draft\" (follows)\nall/length: it reads another \"draft\" (follows)\nall/more: the pipeline of run three has no such step"},
	} {
		diff, err := journal.Diff(t.Context(), j, d.a, d.b)
		must(t, err)
		var lines []string
		for _, x := range diff {
			why := strings.Join(x.Why, ", ")
			if strings.Contains(why, "version") {
				why = "*version*"
			}
			if x.Follows {
				why += " (follows)"
			}
			lines = append(lines, x.Path+": "+why)
		}
		if got := strings.Join(lines, "\n"); got != d.want {
			t.Errorf("Diff(%s, %s):\n%s\nwant\n%s", d.a, d.b, got, d.want)
		}
	}
}

// testSecretFailures checks that texts that the run creates from an error do not contain secrets either: the failure of a Scoped
// body, its node, the error of Run, and the events.
func testSecretFailures(t *testing.T, j tested) {
	const token = "0123456789abcdef"
	told := "GET https://x.test/?key=" + token
	scoped := stone.Scoped("scoped", stone.Walk{}, func(context.Context, dag.DAG) (dag.DAG, error) { return dag.DAG{}, errors.New(told) })
	leaf := stone.Func0("leaf", draft, func(ctx context.Context) (string, error) {
		stone.In(ctx).Event(slog.LevelInfo, "asked", slog.String("url", told), slog.Any("error", errors.New(told)))
		return "", errors.New(told)
	}, stone.Retry{Attempts: 2, Kinds: []kind.Kind{kind.Error}})
	for name, p := range map[string]stone.Ashlar{"scoped": scoped, "leaf": leaf} {
		var log strings.Builder
		cfg := config()
		cfg.RunID = name
		cfg.Watch = event.Log(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		result, err := stone.Run(t.Context(), p, kept(cfg, j, journal.Options{Secrets: []string{token}}))
		d, failed := j.open().DAG(t.Context(), name)
		must(t, failed)
		info, failed := j.Find(t.Context(), name)
		must(t, failed)
		for what, said := range map[string]string{
			"the error": fmt.Sprint(err), "the DAG": text(t, result.DAG), "the journal": text(t, d), "the outcome": fmt.Sprintf("%+v", info.Failure), "the events": log.String(),
		} {
			if strings.Contains(said, token) || !strings.Contains(said, mark) {
				t.Errorf("%s: %s: want the mark in place of the secret: %s", name, what, said)
			}
		}
	}
}
