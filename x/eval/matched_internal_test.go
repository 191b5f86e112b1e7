package eval

import (
	"math/rand/v2"
	"testing"
)

// Of versions with equal scores only the first is revised, so that copies take no rounds from others.
func TestEqualVersions(t *testing.T) {
	ids := []string{"a", "b", "c"}
	scored := func(values ...float64) *version {
		v := &version{attempts: map[string]attempt{}}
		for i, value := range values {
			v.attempts[ids[i]] = attempt{Value: value, Verdict: wrong}
		}
		return v
	}
	w := &work{
		improver: &improver{dev: &split{ids: ids}},
		pool:     []*version{scored(1, 0, 0), scored(1, 0, 0), scored(0, 1, 0), scored(0, 0, 0), scored(1, 0, 0)},
	}
	for i, want := range []bool{false, true, false, true, true} {
		if got := w.matched(i); got != want {
			t.Errorf("version %d is matched: %t, want %t", i, got, want)
		}
	}
	chance := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		if at := w.parent(chance); at != 0 && at != 2 {
			t.Fatalf("version %d is revised, want 0 or 2", at)
		}
	}
}
