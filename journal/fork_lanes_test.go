package journal_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
)

// The forecast of a fork names every step that a fork does again because a node that no step makes, such as the item of a lane,
// has another id after a changed step, even if its content is the same.
func TestForkForecastOfLanes(t *testing.T) {
	var (
		list  = dag.NewType[[]string]("list")
		item  = dag.NewType[string]("item")
		upper = dag.NewType[string]("upper")
		end   = dag.NewType[string]("end")
		calls []string
		read  = []string{"a", "b", "c"}
	)
	said := func(name string, out dag.Type[string], in dag.Type[string], do func(string) (string, error)) stone.Ashlar {
		return stone.Func(name, in, out, func(_ context.Context, s string) (string, error) {
			calls = append(calls, name+" "+s)
			return do(s)
		})
	}
	same := func(s string) (string, error) { return s, nil }
	p := stone.Seq("p",
		stone.Func0("read", list, func(context.Context) ([]string, error) { calls = append(calls, "read"); return read, nil }),
		said("given", made, given, same),
		stone.Rescue("try", said("fail", made, given, func(string) (string, error) { return "", errors.New("no luck") }),
			stone.Func("instead", dag.Failure, made, func(_ context.Context, f dag.FailureContent) (string, error) {
				calls = append(calls, "instead")
				return f.Reason, nil
			})),
		stone.Map("each", list, item, stone.Seq("lane",
			said("up", upper, item, func(s string) (string, error) { return strings.ToUpper(s), nil }),
			said("say", end, upper, same),
		), stone.AllLanes(), stone.Lanes(1)),
		stone.Reduce(stone.Func("join", dag.Lanes(end), made, func(_ context.Context, ends []string) (string, error) {
			calls = append(calls, "join")
			return strings.Join(ends, " "), nil
		})),
	)
	j := memdb.New(t)
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "a", Input: input(t, "x"), Recorder: journal.Keep(j, journal.Options{})}); err != nil {
		t.Fatal(err)
	}
	read = []string{"a", "b", "d"}
	for _, c := range []struct {
		id, at        string
		done          []string
		anew, perhaps string
	}{
		{"of the list", "p/read", []string{"read", "instead", "up a", "up b", "up d", "say D", "join"}, "p/read",
			"p/try/instead p/each[0]/lane/up p/each[0]/lane/say p/each[1]/lane/up p/each[1]/lane/say p/each[2]/lane/up p/each[2]/lane/say p/join"},
		{"of a lane", "p/each[0]/lane/up", []string{"up a"}, "p/each[0]/lane/up", "p/each[0]/lane/say p/each[1]/lane/say p/each[2]/lane/say p/join"},
		{"in a lane", "p/each[1]/lane/say", []string{"say B"}, "p/each[1]/lane/say", "p/join"},
	} {
		fork := &journal.Fork{Run: "a", At: c.at}
		anew, perhaps, _, err := fork.Forecast(t.Context(), j, p, dag.DAG{})
		if err != nil {
			t.Fatal(err)
		}
		calls = nil
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: c.id, Recorder: journal.Keep(j, journal.Options{Fork: fork})}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.done, calls); diff != "" {
			t.Errorf("fork %s: steps (-want +got):\n%s", c.id, diff)
		}
		for i, list := range [][]journal.Step{anew, perhaps} {
			var paths []string
			for _, s := range list {
				paths = append(paths, s.Path)
			}
			if got, want := strings.Join(paths, " "), []string{c.anew, c.perhaps}[i]; got != want {
				t.Errorf("fork %s: forecast %d: got %s, want %s", c.id, i, got, want)
			}
		}
		for _, call := range calls {
			name, _, _ := strings.Cut(call, " ")
			if !slices.ContainsFunc(slices.Concat(anew, perhaps), func(s journal.Step) bool { return s.Name == name }) {
				t.Errorf("fork %s: the forecast left out %s", c.id, call)
			}
		}
	}
}
