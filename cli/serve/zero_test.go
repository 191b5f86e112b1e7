package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
)

// costly spends a cent, ten tokens and a request.
func costly() stone.Ashlar {
	return stone.Leaf("pay", greeting, func(ctx context.Context, d dag.DAG) (*dag.Node, error) {
		draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), "ask", budget.Fixed(budget.Amount{Roundtrips: 1, Tokens: 10, USD: 0.01}))
		if err != nil {
			return nil, err
		}
		defer draw.Close()
		text, err := stone.Step(draw.Context(ctx), "ask", 1, func(context.Context, int) (string, error) { return "paid", draw.Begin() })
		if err != nil {
			return nil, err
		}
		return greeting.Node(d, text, time.Now())
	}, stone.Queries(name.Query()), stone.Detail{Unpriced: func(context.Context) []string { return nil }})
}

func pay(stderr io.Writer, args ...string) (int, string) {
	return commandOf(context.Background(), parts, costly(), stderr, args...)
}

// Through every door, 0 lets nothing be spent, 100000 is enough, and without a limit there is none.
func TestZeroIsNothing(t *testing.T) {
	dir := t.TempDir()
	db, tokens := filepath.Join(dir, "stone.db"), filepath.Join(dir, "tokens.json")
	flag := func(with string) string {
		var stderr bytes.Buffer
		pay(&stderr, append([]string{"run", "-q", "--input", `"Ada"`, "--db", db}, strings.Fields(with)...)...)
		return stderr.String()
	}
	file := func(with string) string {
		name := filepath.Join(dir, "stone.edn")
		if err := os.WriteFile(name, []byte("{"+with+"}"), 0o666); err != nil {
			t.Fatal(err)
		}
		return flag("--config " + name)
	}
	url, secrets, sent := "", map[string]string{}, 0
	send := func(secret, with string) string {
		sent++
		id := fmt.Sprint(url, "/v1/runs/r", sent)
		_, text := request(t, "PUT", id, `{"pipeline":"pay","input":"Ada"`+with+`}`, secret)
		_, result := request(t, "GET", id+"/result?wait=30s", "", secret)
		return text + result
	}
	http := func(with string) string { return send(secrets[""], with) }
	token := func(with string) string { return send(secrets[with], "") }
	inGo := func(with string) string {
		var l budget.Limits
		if n, ok := strings.CutPrefix(with, "new "); ok {
			l.USD = new(float64(len(n) - 1))
		}
		_, err := stone.Run(budget.With(t.Context(), budget.New(l)), costly(), stone.Config{Input: dag.Of(name.With("Ada"))})
		return fmt.Sprint(err)
	}
	asJSON := func(with string) string {
		var l budget.Limits
		if err := json.Unmarshal([]byte("{"+with+"}"), &l); err != nil {
			return err.Error()
		}
		return fmt.Sprint(budget.New(l).Affords(budget.Amount{USD: 0.01}))
	}
	doors := []struct {
		door func(with string) string
		with string // # is the limit
		want string // of 0
	}{
		{flag, "--max-usd=#", budget.Kind}, {flag, "--max-tokens=#", budget.Kind}, {flag, "--max-roundtrips=#", budget.Kind}, {flag, "--max-time=#s", budget.Kind},
		{file, ":budget {:max-usd #}", budget.Kind}, {file, ":budget {:max-tokens #}", budget.Kind}, {file, ":budget {:latency-ms #}", budget.Kind},
		{file, ":budgets {:all {:max-usd #}}", budget.Kind}, {file, ":budgets {:all {:max-roundtrips #}}", budget.Kind},
		{http, `,"budget":{"usd":#}`, budget.Kind}, {http, `,"budget":{"tokens":#}`, budget.Kind}, {http, `,"budget":{"roundtrips":#}`, budget.Kind}, {http, `,"budget":{"seconds":#}`, budget.Kind},
		{token, "--max-usd=#", budget.Kind}, {token, "--max-tokens=#", budget.Kind}, {token, "--max-usd-a-day=#", "daily limit of 0 USD"},
		{token, "--runs=#", "has 0 unfinished runs"}, {token, "--per-minute=#", `"status":429`},
		{inGo, "new #", budget.Kind}, {asJSON, `"max-usd":#`, budget.Kind},
	}
	said := func(with, n string) string { return strings.ReplaceAll(with, "#", n) }
	for _, d := range doors {
		for _, flags := range []string{said(d.with, "0"), said(d.with, "100000"), ""} {
			if secrets[flags] != "" || flags != "" && !strings.HasPrefix(flags, "--") || strings.HasPrefix(flags, "--max-roundtrips") || strings.HasPrefix(flags, "--max-time") {
				continue
			}
			code, secret := pay(t.Output(), append([]string{"token", "create", fmt.Sprint("t", len(secrets)), "--role", "read,start", "--tokens", tokens}, strings.Fields(flags)...)...)
			if code != 0 {
				t.Fatalf("token create %s: %d", flags, code)
			}
			secrets[flags] = strings.TrimSpace(secret)
		}
	}
	url, _, _ = startedOf(t, costly(), "serve", "--address", "127.0.0.1:0", "--db", db, "--tokens", tokens)
	for _, d := range doors {
		for _, with := range []string{said(d.with, "0"), said(d.with, "100000"), ""} {
			if got := d.door(with); strings.Contains(got, d.want) != (with == said(d.with, "0")) {
				t.Errorf("%q: %s", with, got)
			}
		}
	}
}

// A count of nothing is refused.
func TestCountsOfNothing(t *testing.T) {
	for _, line := range []string{
		"eval --n", "eval --trials", "eval --lanes", "eval improve --n", "eval improve --lanes", "eval improve --rounds", "eval improve --shown",
		"model call --max-tokens", "token create t --streams",
	} {
		var stderr bytes.Buffer
		if code, _ := pay(&stderr, append(strings.Fields(line), "0")...); code != 2 || !strings.Contains(stderr.String(), " 0: want 1 or more, or leave the flag out") {
			t.Errorf("%s 0: %d %s", line, code, &stderr)
		}
	}
}
