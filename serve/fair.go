package serve

import (
	"cmp"
	"context"
	"slices"
)

// mostPriority is the highest priority; -mostPriority is the lowest.
const mostPriority = 100

// prioritized sets the priority of a run. The priority is at most 0 for callers that are not interactive.
func prioritized(_ context.Context, t *task) error {
	if t.source.Priority = t.start.Priority; max(t.source.Priority, -t.source.Priority) > mostPriority {
		return unreadable("priority %d: want -%d to %[2]d", t.source.Priority, mostPriority)
	}
	if !t.who.Interactive {
		t.source.Priority = min(t.source.Priority, 0)
	}
	return nil
}

// turnOf returns the name of the group to which a run belongs when groups take turns: the run's tenant or, if it has none, its
// owner or, if it has neither, its pipeline.
func turnOf(src source, tenant string) string {
	switch {
	case tenant != "":
		return "tenant " + tenant
	case src.Owner != "":
		return "caller " + src.Owner
	}
	return "pipeline " + src.Published
}

// fair sorts the due runs in the order in which to resume them. Tenants take turns, each starting with its runs of the highest
// priority. So for each run of its own tenant ahead of it, a run waits for at most one run of every other tenant.
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
	// A tenant's runs with equal priority are resumed in the order in which they started.
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
