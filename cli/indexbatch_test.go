//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/internal/test/batchtest"
)

// Texts of documents wait for a batch at half the price; the question of a search does not.
func TestIndexInBatches(t *testing.T) {
	for protocol, path := range map[string]string{"openai": "/v1", "gemini": "/v1beta"} {
		t.Run(protocol, func(t *testing.T) { indexInBatches(t, protocol, path) })
	}
}

func indexInBatches(t *testing.T, protocol, path string) {
	b := batchtest.New(t, 100)
	t.Chdir(t.TempDir())
	t.Setenv("OPENAI_API_KEY", "key")
	t.Setenv("STONE_TRUST", "1")
	for name, text := range map[string]string{
		"docs/one.md": "# Granite\n\nA hard stone.", "docs/two.md": "# Slate\n\nA stone that splits.",
		".stone/stone.edn": fmt.Sprintf(`{:providers {:p {:protocol :%s :url %q :key {:env "OPENAI_API_KEY"}}}
 :models [{:model "m" :date "2026-01-01" :usd-per-mtok-in 2 :usd-per-mtok-out 0}]
 :search {:embedder {:provider :p :model "m"}}}`, protocol, b.URL+path),
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	of := map[string]string{"openai": "1", "gemini": "2"}[protocol] // Gemini counts texts
	batch := map[string]string{"openai": "batch_1_", "gemini": "batches/batch_1_"}[protocol]
	for _, c := range []struct {
		args          string
		code          int
		stdout, notes string
		looks         int
	}{
		{"index docs -q --id i --batch --no-wait", cli.Waiting, "", "waiting: batch " + batch + " of " + protocol + ": 0 of " + of + " done", 100},
		{"resume i -q --no-wait", cli.Waiting, "", "waiting: batch " + batch + " of " + protocol, 100},
		{"resume i -q --no-wait=false", cli.Done, "2 documents", "", 0},
		{"runs", cli.Done, "0.0010", "", 0}, // half the price of 1,000 tokens
		{"index docs -q --id again --batch", cli.Done, "2 documents", "", 0},
		{"search slate --json", cli.Done, "two.md", "", 0},
	} {
		b.Looks = c.looks
		var out, errs bytes.Buffer
		code := cli.Run(context.Background(), cli.Config{
			Parts: parts, Pipeline: cli.FromArgument, Name: "stone", Args: strings.Fields(c.args),
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		})
		if code != c.code || !strings.Contains(out.String(), c.stdout) || !strings.Contains(errs.String(), c.notes) {
			t.Errorf("%s: code %d, want %d\n%s\n%s", c.args, code, c.code, out.String(), errs.String())
		}
	}
	if len(b.Batches) != 1 || b.Direct != 1 {
		t.Errorf("%d batches and %d direct requests, want one for the documents and one for the question", len(b.Batches), b.Direct)
	}
}
