package call_test

import (
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
)

// What a call demands is in its fingerprint, what it may cost is not.
func TestPrint(t *testing.T) {
	answer := dag.NewType[string]("answer")
	w, none := &world{}, &call.Applicator{}
	strict := &call.Applicator{Policy: call.Policy{Default: call.Rules{Done: call.Done{Must: []string{"json"}}}}}
	base := call.Spec{Applicator: none, Intent: "text/respond"}
	with := func(edit func(*call.Spec)) call.Spec {
		s := base
		edit(&s)
		return s
	}
	print := func(s call.Spec) dag.ID { return call.New("c", answer, s).Fingerprint() }
	for name, s := range map[string]call.Spec{
		"intent": with(func(s *call.Spec) { s.Intent = "text/rewrite" }),
		"cap":    with(func(s *call.Spec) { s.Cap = "one" }),
		"must":   with(func(s *call.Spec) { s.Done.Must = []string{"json"} }),
		"policy": with(func(s *call.Spec) { s.Applicator = strict }),
		"race":   with(func(s *call.Spec) { s.Dispatch.Strategy = call.Race }),
	} {
		if print(s) == print(base) {
			t.Errorf("a call with another %s has the same fingerprint", name)
		}
	}
	versions := map[dag.ID]bool{}
	for _, v := range [][2]string{{"", ""}, {"1", ""}, {"2", ""}, {"2", "1"}} {
		on := true
		versioned := app(w.cap(nil, call.Metadata{ID: "a", Version: v[0], Intents: []string{"text/respond"}}), w.cap(nil, call.Metadata{ID: "j", Version: v[1], Intents: []string{terms.Grade}}))
		versioned.Policy.Default.Judge.On = &on
		versions[print(with(func(s *call.Spec) { s.Applicator = versioned }))] = true
	}
	if len(versions) != 4 {
		t.Errorf("%d fingerprints of 4 combinations of versions", len(versions))
	}
	if print(with(func(s *call.Spec) { s.Budget.Tokens = new(7) })) != print(base) {
		t.Error("a call with another budget has another fingerprint: what was paid for would be paid for again")
	}
}

// A resumed run refuses another version of a capability. If it is forced, the recorded answer stands;
// if the call is made again, the new version is asked, and the record says which one answered.
func TestVersions(t *testing.T) {
	w := &world{}
	memory := memdb.New(t)
	for i, tc := range []struct {
		version string
		force   bool
		again   []string
		want    string
		calls   int
	}{{"1", false, nil, "1", 1}, {"1", false, nil, "1", 1}, {"2", false, nil, "", 1}, {"2", true, nil, "1", 1}, {"2", true, []string{"reply"}, "2", 2}, {"2", false, nil, "2", 2}} {
		spec := call.Spec{Applicator: app(w.cap(nil, call.Metadata{ID: "a", Version: tc.version})), Cap: "a"}
		v := runCall(t.Context(), spec, call.Budget{}, stone.Config{RunID: "r", Recorder: journal.Keep(memory, journal.Options{Force: tc.force, Again: tc.again})})
		if v.rec.Version != tc.want || tc.want != "" && v.rec.Tried[0].Version != tc.want || len(w.calls) != tc.calls {
			t.Errorf("run %d with version %s: asked %d times: %v %+v", i, tc.version, len(w.calls), v.err, v.rec)
		}
	}
}
