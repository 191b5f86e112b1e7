// Package grants checks effect names, and compares effects with the grant of a run.
package grants

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/suggest"
)

// Known returns the names of all effects that package effect declares, except None.
func Known() []string {
	return []string{effect.Ask, effect.FS, effect.FSRead, effect.FSWrite, effect.Net, effect.Process}
}

// Covers reports whether a grant of the effect granted also allows the effect needed.
func Covers(granted, needed string) bool {
	rest, ok := strings.CutPrefix(needed, granted)
	return ok && granted != "" && (rest == "" || rest[0] == '/')
}

// Allowed reports whether the grant allows an effect. A nil grant allows every effect, and an empty grant allows none.
func Allowed(needed string, grant []string) bool {
	return grant == nil || needed == effect.None || slices.ContainsFunc(grant, func(g string) bool { return Covers(g, needed) })
}

// Missing returns the effects in needs that the grant does not allow.
func Missing(needed, grant []string) (missing []string) {
	for _, e := range needed {
		if !Allowed(e, grant) {
			missing = append(missing, e)
		}
	}
	return missing
}

// Narrow returns a grant that allows exactly the effects that both grants allow. A nil grant allows every effect.
func Narrow(a, b []string) []string {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	both := []string{}
	for _, e := range b {
		if Allowed(e, a) && e != effect.None {
			both = append(both, e)
		}
	}
	for _, e := range a {
		if Allowed(e, b) && e != effect.None && !slices.Contains(both, e) {
			both = append(both, e)
		}
	}
	return both
}

// Check returns an *UnknownError if the name is probably a mistake: if it is not known, and does not belong to a family with
// arbitrary members, such as net, process or any family that Stone does not define.
func Check(name string) error {
	family, member, qualified := strings.Cut(name, "/")
	switch {
	case name == effect.None, slices.Contains(Known(), name), (family == effect.Net || family == effect.Process) && member != "":
		return nil
	case qualified && family != "" && member != "" && !slices.Contains(Known(), family):
		return nil
	}
	return &UnknownError{name, suggest.Closest(name, slices.Values(Known()))}
}

// An UnknownError reports an effect name that is not known.
type UnknownError struct {
	Name       string
	Suggestion string // the most similar known effect, or "" if none is similar
}

// Error returns a message with the unknown name and the suggestion or, if there is no suggestion, the known effects.
func (e *UnknownError) Error() string {
	if e.Suggestion != "" {
		return fmt.Sprintf("unknown effect %q: did you mean %q?", e.Name, e.Suggestion)
	}
	return fmt.Sprintf("unknown effect %q: want %s, or one with a family of your own, such as db/write", e.Name, strings.Join(Known(), ", "))
}
