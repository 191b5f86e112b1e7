package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal/internal/log"
)

// Lists use an index for whatever a query asks for, and a page of 100 of 20,000 runs reads few
// pages of the database.
func TestListsUseIndexes(t *testing.T) {
	address := pgtest.Database(t)
	db := open(t, address, Options{})
	pgtest.Exec(t, address, "ALTER TABLE stone.runs SET (autovacuum_enabled = false); ALTER TABLE stone.labels SET (autovacuum_enabled = false)")
	pgtest.Exec(t, address, `INSERT INTO stone.runs (id, owner, beat, lease, outside, rows, state, info, outcome, pipeline, started, ended)
		SELECT 'r' || i, 'o', 0, 0, '', 1, CASE WHEN i % 1000 = 0 THEN 'failed' WHEN i % 997 = 0 THEN 'waiting' ELSE 'done' END,
			repeat('x', 2000), CASE WHEN i % 1000 = 0 THEN '{"failure":{"kind":"http","reason":"Broken pipe"},"usage":{"usd":' || i || '}}' ELSE '{"usage":{"usd":1}}' END, 'p' || i % 50, i, CASE WHEN i = 10 THEN 30000 ELSE i END FROM generate_series(1, 20000) i`)
	pgtest.Exec(t, address, `INSERT INTO stone.labels SELECT 'team', 't' || run % 50, run FROM stone.runs`)
	pgtest.Exec(t, address, "ANALYZE stone.runs; ANALYZE stone.labels") // as autovacuum does
	for want, s := range map[string]log.RunSelection{
		"states":      {States: []string{"failed"}},
		"states ":     {States: []string{"", "running", "waiting"}},
		"labels_pkey": {Labels: map[string]string{"team": "t7"}},
		"starts":      {Labels: map[string]string{"team": "t7"}, Started: 19_900},
		"piped":       {Pipeline: "p7", States: []string{"done"}},
		"pipelines":   {Pipeline: "p7"},
		"failures":    {Failed: true, Failure: "broken"},
		"failures ":   {Failed: true, Failure: "never"},
		"costs":       {Cost: 15_000},
		"starts ":     {Pipeline: "p7", Started: 19_900},
		"ends":        {Ended: 19_900, States: []string{"done", "failed", "waiting"}},
		"starts  ":    {Started: 19_900},
		"runs_pkey":   {Before: 10_000},
	} {
		text, args := selectingRuns(s, 100)
		var plan []string
		err := db.database.queryOnce(t.Context(), statement{"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) " + text, args, func(v [][]byte) { plan = append(plan, string(v[0])) }})
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(plan, "\n")
		var hit, other int
		_, buffers, _ := strings.Cut(all, "Buffers: shared ")
		fmt.Sscanf(buffers, "hit=%d read=%d", &hit, &other)
		const most = 800 // the table has 940, without its texts
		index := strings.TrimSpace(want)
		if hit == 0 || hit+other > most || strings.Contains(all, "Seq Scan on runs") || !strings.Contains(all, "using "+index) && !strings.Contains(all, "Scan on "+index) {
			t.Errorf("%+v: %d pages, want the index %s and at most %d pages:\n%s", s, hit+other, index, most, all)
		}
	}
}
