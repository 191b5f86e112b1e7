package call_test

import (
	"context"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// A step in Go chooses the capability. A resumed run invokes it again if the capability has
// another version, and only then.
func TestCandidatesOfTheRun(t *testing.T) {
	who := dag.NewType[[]string]("who")
	first := dag.Derive(who, func(all []string) string { return all[0] })
	for _, tc := range []struct {
		name  string
		ids   []string
		spec  call.Spec
		want  string
		calls []string
	}{
		{"one", []string{"b"}, call.Spec{CapFrom: first}, "b", []string{"b"}},
		{"several", []string{"c", "a"}, call.Spec{CandidatesFrom: who}, "a", []string{"c", "a"}},
		{"an unknown one", []string{"aa"}, call.Spec{CapFrom: first}, "!dispatch/no-candidate", nil},
		{"none", []string{}, call.Spec{CandidatesFrom: who}, "!input/schema-invalid", nil},
		{"nothing", []string{""}, call.Spec{CapFrom: first}, "!input/schema-invalid", nil},
		{"two ways", []string{"a"}, call.Spec{CapFrom: first, Cap: "a"}, "!bad-option", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &world{}
			tc.spec.Applicator = app(w.cap(nil, call.Metadata{ID: "a"}), w.cap(nil, call.Metadata{ID: "b"}), w.cap(fails(call.Unavailable), call.Metadata{ID: "c"}))
			tc.spec.Intent = "mail/sort"
			choose := stone.Func0("choose", who, func(context.Context) ([]string, error) { return tc.ids, nil })
			v := runAshlar(t.Context(), stone.Seq("two", choose, call.New("ask", out, tc.spec)), stone.Config{})
			if v.brief() != tc.want {
				t.Errorf("got %s, want %s (%v)", v.brief(), tc.want, v.err)
			}
			wantCalls(t, w, tc.calls...)
		})
	}
}

func TestVersionOfTheChosen(t *testing.T) {
	who := dag.NewType[string]("who")
	memory := &journal.Memory{}
	w := &world{}
	run := func(a, b string) {
		spec := call.Spec{Applicator: app(w.cap(nil, call.Metadata{ID: "a", Version: a}), w.cap(nil, call.Metadata{ID: "b", Version: b})), Intent: "mail/sort", CapFrom: who}
		choose := stone.Func0("choose", who, func(context.Context) (string, error) { return "a", nil })
		cfg := stone.Config{RunID: "once", Recorder: journal.Keep(memory, journal.Options{})}
		if v := runAshlar(t.Context(), stone.Seq("two", choose, call.New("ask", out, spec)), cfg); v.err != nil {
			t.Error(v.err)
		}
	}
	run("1", "1")
	run("1", "2")
	wantCalls(t, w, "a")
}
