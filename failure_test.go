package stone_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// TestReasonDoesNotRepeatKind says the kind and the place of a failure once, however the error
// of the body is made.
func TestReasonDoesNotRepeatKind(t *testing.T) {
	spent := &budget.ExhaustedError{Limit: "max-usd"}
	placed := &stone.Failure{Kind: "tired", Reason: "no more", Path: "inner"}
	out := dag.NewType[string]("out")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"an error with a kind":          {spent, "budget/exhausted at leaf: nothing more may be spent within max-usd"},
		"failed with that kind":         {stone.Fail(budget.Kind, "%w", spent), "budget/exhausted at leaf: nothing more may be spent within max-usd"},
		"failed twice":                  {stone.Fail("tired", "%w", stone.Fail("tired", "%w", stone.Fail("tired", "no more"))), "tired at leaf: no more"},
		"wrapped":                       {fmt.Errorf("%w", stone.Fail("tired", "no more")), "tired at leaf: no more"},
		"with a place":                  {placed, "tired at inner: no more"},
		"several errors":                {errors.Join(errors.New("no roof"), errors.New("no walls:\n\tno stone\r\n")), "error at leaf: no roof; no walls: no stone"},
		"failed with several":           {stone.Fail("tired", "%w", errors.Join(errors.New("a"), errors.New("b"))), "tired at leaf: a; b"},
		"wrapped with a place":          {fmt.Errorf("%w", placed), "tired at inner: no more"},
		"failed with another kind":      {stone.Fail("other", "%w", placed), "other at leaf: tired at inner: no more"},
		"a kind that is only mentioned": {fmt.Errorf("at work: %w", stone.Fail("tired", "no more")), "tired at leaf: at work: tired: no more"},
	} {
		t.Run(name, func(t *testing.T) {
			var db journal.Memory
			leaf := stone.Func0("leaf", out, func(context.Context) (string, error) { return "", test.err })
			_, err := stone.Run(t.Context(), leaf, stone.Config{RunID: "r", Recorder: journal.Keep(&db, journal.Options{})})
			if err == nil || err.Error() != test.want {
				t.Errorf("the run fails with %v, want %s", err, test.want)
			}
			info, findErr := db.Find(t.Context(), "r")
			if findErr != nil {
				t.Fatal(findErr)
			}
			if failure, ok := errors.AsType[*stone.Failure](err); ok && info.Failure.Reason != failure.Reason {
				t.Errorf("the journal has the reason %q, want %q", info.Failure.Reason, failure.Reason)
			}
		})
	}
}
