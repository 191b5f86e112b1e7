package serve

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/journal"
)

// Access identifies the caller of a request. If it returns an error, the server replies with status 401 or, if the error is an
// *api.Problem, with the status of the problem.
type Access interface {
	Principal(r *http.Request) (Principal, error)
}

// A Role is a permission that a caller can have.
type Role string

// The roles. No role includes another.
const (
	Read   Role = "read"   // see pipelines, runs, nodes and questions
	Start  Role = "start"  // start, cancel, resume and remove runs
	Force  Role = "force"  // resume runs even if their pipeline has changed; requires Start
	Grant  Role = "grant"  // narrow a run's grant, as a parent run does for its children; requires Start
	Answer Role = "answer" // answer questions
	Act    Role = "act"    // call capabilities
	Scrape Role = "scrape" // read /metrics, which covers all tenants
)

// Principal is a caller.
type Principal struct {
	Name string
	// By identifies the caller in recorded answers, for example as "token ops". If By is empty, Name is used.
	By     string
	Tenant string // at most 64 characters from a-z, A-Z, 0-9, "-" and "_"; if empty, the caller has no tenant and sees all runs
	Roles  []Role // nil means all
	// Grant narrows the effects of the runs that the caller starts; nil leaves them unchanged.
	Grant []string
	// Limits apply to each run that the caller starts.
	Limits budget.Limits
	// PerMinute is the maximum number of the caller's requests per minute, and Runs the maximum number of its concurrent runs, on
	// each server. Nil means unlimited. Callers with the same Name share both limits.
	PerMinute, Runs *int
	// Streams is the maximum number of event streams, watched lists and waits for results that the caller may have open on each
	// server. Zero means the value of Config.Streams. Callers with the same Name share the limit.
	Streams int
	// Interactive permits the caller to use api.Start.Interactive, which gives a run precedence when requests to a model are
	// limited, and a positive api.Start.Priority. Otherwise Interactive has no effect, and a positive Priority counts as 0.
	Interactive bool
	// USDADay limits the daily (UTC) cost of everything that the caller starts, in all servers that share the journal. Nil means
	// unlimited. If USDADay is set, the answers to the caller's capability requests are kept, so that they still count after a
	// restart.
	USDADay *float64
}

// may reports whether the caller has the role.
func (p Principal) may(role Role) bool { return p.Roles == nil || slices.Contains(p.Roles, role) }

// tenantName matches the names of tenants. The IDs of a tenant's runs start with its name and a dot.
var tenantName = regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}$`)

// by returns the name by which recorded answers identify the caller: By or, if By is empty, Name.
func (p Principal) by() string { return cmp.Or(p.By, p.Name) }

// labels returns the labels that a run must have to be visible to the caller.
func (p Principal) labels() map[string]string {
	if p.Tenant == "" {
		return map[string]string{}
	}
	return map[string]string{tenantLabel: p.Tenant}
}

// sees reports whether the caller may see the run.
func (p Principal) sees(run journal.RunInfo) bool {
	return p.Tenant == "" || run.Labels[tenantLabel] == p.Tenant
}

// everyone is the default Access: it admits every caller with all roles.
type everyone struct{}

func (everyone) Principal(*http.Request) (Principal, error) {
	return Principal{Interactive: true}, nil
}
