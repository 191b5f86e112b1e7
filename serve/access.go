package serve

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/journal"
)

// Access identifies the caller of a request. Its error is shown to the caller, with status 401. It may be a
// *api.Problem with another status.
type Access interface {
	Principal(r *http.Request) (Principal, error)
}

// Role is a permission of a caller.
type Role string

// The roles. No role includes another.
const (
	Read   Role = "read"   // see pipelines, runs, nodes and questions
	Start  Role = "start"  // start, cancel, resume and remove runs
	Force  Role = "force"  // with Start: resume runs although their pipeline changed
	Grant  Role = "grant"  // with Start: narrow the grant of a run, as parents do for children
	Answer Role = "answer" // answer questions
	Act    Role = "act"    // ask capabilities
	Scrape Role = "scrape" // read /metrics, which covers all tenants
)

// Principal is a caller.
type Principal struct {
	Name string
	// By names the caller when its answers are recorded, such as "token ops"; Name if empty.
	By     string
	Tenant string // up to 64 of a-z, A-Z, 0-9, "-" and "_"; empty means no tenant: the caller sees all runs
	Roles  []Role // nil means all
	// Grant narrows the effects of the runs that the caller starts; nil leaves them unchanged.
	Grant []string
	// Limits apply to each run that the caller starts.
	Limits budget.Limits
	// PerMinute limits the caller's requests, and Runs its concurrent runs, in each server. Nil means unlimited. Callers with the
	// same Name share both limits.
	PerMinute, Runs *int
	// Streams limits the caller's open event streams, watched lists and waits for results, in each server; Config.Streams if
	// zero. Callers with the same Name share the limit.
	Streams int
	// Interactive permits api.Start.Interactive, which gives a run precedence where requests to a model are limited, and a
	// positive api.Start.Priority. Without it they have no effect.
	Interactive bool
	// USDADay limits the daily (UTC) cost of everything that the caller starts, in all servers that share the journal. Nil means
	// unlimited. With a limit, answers to its capability requests are kept, so that they count after a restart.
	USDADay *float64
}

// may reports whether the caller has the role.
func (p Principal) may(role Role) bool { return p.Roles == nil || slices.Contains(p.Roles, role) }

// tenantName matches the names of tenants. Ids of runs start with the name and a dot.
var tenantName = regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}$`)

// by names the caller when its answers are recorded.
func (p Principal) by() string { return cmp.Or(p.By, p.Name) }

// labels are the labels of every run that the caller sees.
func (p Principal) labels() map[string]string {
	if p.Tenant == "" {
		return map[string]string{}
	}
	return map[string]string{tenantLabel: p.Tenant}
}

// sees reports whether the run exists for the caller.
func (p Principal) sees(run journal.RunInfo) bool {
	return p.Tenant == "" || run.Labels[tenantLabel] == p.Tenant
}

// everyone is the default Access.
type everyone struct{}

func (everyone) Principal(*http.Request) (Principal, error) {
	return Principal{Interactive: true}, nil
}
