package journal_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
)

// sized counts what it does: first, size, which reads only the length of that, and last.
func sized(calls *[]string, first, size string) stone.Ashlar {
	length := dag.NewType[int]("length")
	return stone.Seq("p",
		stone.Func("first", given, made, func(_ context.Context, s string) (string, error) {
			*calls = append(*calls, "first")
			return s + first, nil
		}, stone.Version(first)),
		stone.Func("size", made, length, func(_ context.Context, s string) (int, error) { *calls = append(*calls, "size"); return len(s), nil }, stone.Version(size)),
		stone.Func("last", length, dag.NewType[int]("end"), func(_ context.Context, n int) (int, error) { *calls = append(*calls, "last"); return 2 * n, nil }),
	)
}

// A fork of a fork shares what the first one has shared, also behind a step that it does again with the same result.
func TestForkOfFork(t *testing.T) {
	j := memdb.New(t)
	var calls []string
	for _, c := range []struct {
		id, first string
		fork      *journal.Fork
		want      []string
	}{
		{"a", "!", nil, []string{"first", "size", "last"}},
		{"b", "?", &journal.Fork{Run: "a", At: "p/first"}, []string{"first", "size"}},
		{"c", "?", &journal.Fork{Run: "b", At: "p/size"}, []string{"size"}},
	} {
		calls = nil
		cfg := stone.Config{RunID: c.id, Recorder: journal.Keep(j, journal.Options{Fork: c.fork})}
		if c.fork == nil {
			cfg.Input = input(t, "x")
		}
		_, err := stone.Run(t.Context(), sized(&calls, c.first, "1"), cfg)
		if diff := cmp.Diff(c.want, calls); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.id, err, diff)
		}
	}
}

// What is set has a bound and no secret, and the forecast knows it, and steps of another version.
func TestForkForecast(t *testing.T) {
	var calls []string
	j := memdb.New(t)
	if _, err := stone.Run(t.Context(), sized(&calls, "!", "1"), stone.Config{RunID: "a", Input: input(t, "x"), Recorder: journal.Keep(j, journal.Options{})}); err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{
		strings.Repeat("y", 1<<20): "has 1048578 bytes: want at most 1048576",
		"my secret word":           "contains a secret",
	} {
		text, _ := json.Marshal(set)
		opts := journal.Options{Fork: &journal.Fork{Run: "a", At: "p/first", Set: text}, Secrets: []string{"secret word"}}
		_, err := stone.Run(t.Context(), sized(&calls, "!", "1"), stone.Config{RunID: "b", Recorder: journal.Keep(j, opts)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, want %q", set, err, want)
		}
	}
	for _, c := range []struct {
		fork   journal.Fork
		size   string
		want   [3]string // anew, perhaps, shared
		reason string
	}{
		{journal.Fork{Run: "a", At: "p/first"}, "1", [3]string{"p/first", "p/size p/last"}, "what reads a step that is done again may be done again"},
		{journal.Fork{Run: "a", At: "p/first", Set: json.RawMessage(`"y"`)}, "1", [3]string{"", "p/size p/last"}, "what is set is not done"},
		{journal.Fork{Run: "a", At: "p/last"}, "2", [3]string{"p/size p/last", "", "p/first"}, "another version is done again"},
	} {
		var got [3]string
		anew, perhaps, shared, err := c.fork.Forecast(t.Context(), j, sized(&calls, "!", c.size), dag.DAG{})
		for i, steps := range [][]journal.Step{anew, perhaps, shared} {
			var paths []string
			for _, s := range steps {
				paths = append(paths, s.Path)
			}
			got[i] = strings.Join(paths, " ")
		}
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.reason, got, err, c.want)
		}
	}
}
