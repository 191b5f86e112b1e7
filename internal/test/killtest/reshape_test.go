//go:build unix

package killtest

import (
	"maps"
	"testing"
)

// A run is refused to programs with other steps.
func TestReshaped(t *testing.T) {
	v := newVictim(t)
	if !v.end(v.start("")) {
		t.Fatal("the process was killed by somebody else")
	}
	v.reshape()
}

// reshape starts the run with pipelines of other structures. Each is refused before anything is done, with the difference. By
// force only what is new is done.
func (v *victim) reshape() {
	v.Helper()
	before := v.lines()
	for shape, says := range map[string]string{
		"added": "all/last was added", "removed": "all/leaf-9 was removed", "renamed": "all/leaf-9 is now called all/leaf-nine", "moved": "order",
	} {
		v.refused(v.start("", childShape+"="+shape), "was started with another pipeline or input", says)
	}
	if now := v.lines(); !maps.Equal(before, now) {
		v.Errorf("a refused pipeline has done work: %v, then %v", before, now)
	}
	p := v.start("", childShape+"=added", childForce+"=yes")
	v.await("a process does not end", p.over)
	if err := p.Wait(); err != nil {
		v.Errorf("the longer pipeline, by force: %v: %s", err, &p.errs)
	}
	before["all/last"]++
	if now := v.lines(); !maps.Equal(before, now) {
		v.Errorf("the longer pipeline did %v, want only its last step after %v", now, before)
	}
}
