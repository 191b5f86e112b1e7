package config_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// The pipeline of a linked package answers; its types are the request's and the answer's.
func TestPackages(t *testing.T) {
	word, other, size := dag.NewType[string]("word"), dag.NewType[string]("other"), dag.NewType[int]("size")
	count := stone.Func("count", word, size, func(_ context.Context, w string) (int, error) { return len(w), nil })
	both := stone.Func2("both", word, other, size, func(_ context.Context, a, b string) (int, error) { return len(a + b), nil })
	linked.Provide("test/count", func(args []string) (stone.Ashlar, error) {
		if len(args) > 0 {
			return stone.Ashlar{}, errors.New("it takes no arguments")
		}
		return count, nil
	})
	linked.Provide("test/both", func([]string) (stone.Ashlar, error) { return both, nil })
	linked.Provide("test/choice", func([]string) (stone.Ashlar, error) {
		return stone.Match("choice", stone.On(word, func(s string) string { return s }), stone.Case("a", count), stone.Case("b", stone.Func("again", word, word, func(_ context.Context, w string) (string, error) { return w, nil }))), nil
	})
	linked.Provide("test/alone", func([]string) (stone.Ashlar, error) {
		return stone.Func0("alone", size, func(context.Context) (int, error) { return 7, nil }), nil
	})

	c := mustLoad(t, `
		{:capabilities {:count {:cap/kind :go :package "test/count" :cap/intents #{:count}}
		                :alone {:cap/kind :go :package "test/alone" :cap/intents #{:alone}}
		                :gone  {:cap/kind :go :package "./gone" :cap/intents #{:gone}}}}`)
	for intent, want := range map[string]string{
		"count": "input/schema-invalid: count takes a word", // an object is no word
		"alone": "7",
		"gone":  `runtime/unavailable: the package ./gone is not linked into this program: pass cli.Provide("./gone", …) to cli.Main, or use the command stone`,
	} {
		if got := act(t, c, intent, `{"x":1}`); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", intent, got, want)
		}
	}
	if got := strings.Join(c.Packages(), " "); got != "test/count test/alone ./gone" {
		t.Errorf("packages %s", got)
	}
	for text, want := range map[string]string{
		`:package "test/both"`:              "the package test/both: its Pipeline reads word, other: name the one that is the input with :in",
		`:package "test/count" :in :size`:   "the package test/count: its Pipeline reads no size",
		`:package "test/count" :out :word`:  "the package test/count: its Pipeline produces no word, but size",
		`:package "test/count" :args ["x"]`: "the package test/count: it takes no arguments",
		`:package "test/choice"`:            "the package test/choice: its Pipeline may end with several types: name the answer among size, word with :out",
	} {
		if _, err := load(t, `{:capabilities {:a {:cap/kind :go `+text+`}}}`); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
