package serve

import (
	"cmp"
	"context"
	"slices"
)

// mostPriority bounds priorities.
const mostPriority = 100

// prioritized gives a run its priority. Callers that no person waits for have none above 0.
func prioritized(_ context.Context, t *task) error {
	if t.source.Priority = t.start.Priority; max(t.source.Priority, -t.source.Priority) > mostPriority {
		return unreadable("priority %d: want -%d to %[2]d", t.source.Priority, mostPriority)
	}
	if !t.who.Interactive {
		t.source.Priority = min(t.source.Priority, 0)
	}
	return nil
}

// turnOf returns among whom a run takes turns: its tenant, else its caller, else its pipeline.
func turnOf(src source, tenant string) string {
	switch {
	case tenant != "":
		return "tenant " + tenant
	case src.Owner != "":
		return "caller " + src.Owner
	}
	return "pipeline " + src.Published
}

// fair returns the runs that are due in the order in which they are resumed, as far as there is room: tenants take turns,
// and each has its highest priority first. So a run waits for one of each other tenant, and for no
// more than its own tenant has before it.
func fair(due []dueRun) []dueRun {
	type place struct {
		dueRun
		tenant   string
		priority int
		round    int
	}
	all := make([]place, len(due))
	for i, d := range due {
		src, _ := sourceOf(d.RunInfo)
		all[i] = place{dueRun: d, tenant: turnOf(src, d.Labels[tenantLabel]), priority: src.Priority}
	}
	// The runs of a tenant with one priority go in the order of their starts.
	slices.SortStableFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), a.Started.Compare(b.Started))
	})
	rounds := map[string]int{}
	for i := range all {
		all[i].round = rounds[all[i].tenant]
		rounds[all[i].tenant]++
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.round, b.round) })
	for i := range all {
		due[i] = all[i].dueRun
	}
	return due
}
