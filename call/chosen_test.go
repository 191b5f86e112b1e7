package call_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
)

// A step in Go chooses the capability. A resumed run invokes it again if the capability has
// another version, and only then.
func TestCandidatesOfTheRun(t *testing.T) {
	who := dag.NewType[[]string]("who")
	first := dag.Derive(who, func(all []string) call.Handle { return call.Handle{Cap: all[0]} })
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
			tc.spec.Applicator = app(w.cap(nil, call.Metadata{ID: "a"}), w.cap(nil, call.Metadata{ID: "b"}), w.cap(fails(reasons.Unavailable), call.Metadata{ID: "c"}))
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

// TestContractOfAHandle joins what a handle asks for with what the call does.
func TestContractOfAHandle(t *testing.T) {
	held := dag.NewType[call.Handle]("held")
	must := func(names ...string) call.Done { return call.Done{Must: names} }
	for _, tc := range []struct {
		name   string
		handle call.Handle
		spec   call.Spec
		want   string
	}{
		{"no contract", call.Handle{Cap: "a"}, call.Spec{}, "a"},
		{"a check that holds", call.Handle{Cap: "a", Done: must("good")}, call.Spec{}, "a"},
		{"a check that fails", call.Handle{Cap: "a", Done: must("bad")}, call.Spec{}, "!eval/must-failed"},
		{"with another of the call", call.Handle{Cap: "a", Done: must("good")}, call.Spec{Done: must("bad")}, "!eval/must-failed"},
		{"an unknown check", call.Handle{Cap: "a", Done: must("nice")}, call.Spec{}, "!input/schema-invalid"},
		{"a schema of the call", call.Handle{Cap: "a", Requires: call.Requires{OutSchema: "res/text"}}, call.Spec{Requires: call.Requires{OutSchema: "res/text"}}, "a"},
		{"another schema", call.Handle{Cap: "a", Requires: call.Requires{OutSchema: "res/any"}}, call.Spec{Requires: call.Requires{OutSchema: "res/text"}}, "!input/schema-invalid"},
		{"tags", call.Handle{Cap: "a", Requires: call.Requires{Tags: []string{"fast"}}}, call.Spec{}, "!dispatch/no-candidate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &world{}
			tc.spec.Applicator = app(w.cap(nil, call.Metadata{ID: "a", Out: "res/text"}))
			tc.spec.Applicator.Checks = map[string]call.Check{
				"good": func(context.Context, call.Subject) error { return nil },
				"bad":  func(context.Context, call.Subject) error { return errors.New("bad") },
			}
			tc.spec.Intent, tc.spec.CapFrom = "mail/sort", held
			choose := stone.Func0("choose", held, func(context.Context) (call.Handle, error) { return tc.handle, nil })
			v := runAshlar(t.Context(), stone.Seq("two", choose, call.New("ask", out, tc.spec)), stone.Config{})
			if v.brief() != tc.want {
				t.Errorf("got %s, want %s (%v)", v.brief(), tc.want, v.err)
			}
		})
	}
}

func TestVersionOfTheChosen(t *testing.T) {
	who := dag.NewType[string]("who")
	memory := memdb.New(t)
	w := &world{}
	run := func(a, b string) {
		spec := call.Spec{Applicator: app(w.cap(nil, call.Metadata{ID: "a", Version: a}), w.cap(nil, call.Metadata{ID: "b", Version: b})), Intent: "mail/sort", CapFrom: dag.Derive(who, func(id string) call.Handle { return call.Handle{Cap: id} })}
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
