package serve

import (
	"net/http"
	"slices"

	"github.com/stonelayer/stone/budget"
)

// Access says who sends a request. The error is shown to the caller, with status 401. It
// may be a *api.Problem with another status.
type Access interface {
	Principal(r *http.Request) (Principal, error)
}

// Role is what a caller may do.
type Role string

// The roles. Each allows only what it says.
const (
	Read   Role = "read"   // see pipelines, runs, nodes and questions
	Start  Role = "start"  // start, cancel, resume and remove runs
	Answer Role = "answer" // answer questions
	Act    Role = "act"    // ask capabilities
)

// Principal is a caller.
type Principal struct {
	Name   string
	Tenant string // empty means that of no one: it sees all runs
	Roles  []Role // nil means all
	// Grant narrows the effects of the runs that it starts; nil does not.
	Grant []string
	// Limits bound each of the runs that it starts.
	Limits budget.Limits
	// PerMinute bounds its requests, and Runs how many of its runs are under way at once,
	// in each server. Zero does not. Callers with one Name share them.
	PerMinute, Runs int
}

// may reports whether the caller has the role.
func (p Principal) may(role Role) bool { return p.Roles == nil || slices.Contains(p.Roles, role) }

// everyone is the Access without one.
type everyone struct{}

func (everyone) Principal(*http.Request) (Principal, error) { return Principal{}, nil }
