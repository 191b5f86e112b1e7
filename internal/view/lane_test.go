package view

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// decided has the decisions of a run by path, and counts how often they are read.
type decided struct {
	journal.Journal
	at   map[string]string
	read int
}

func (d *decided) Record(_ context.Context, _, path, kind string) (step.Record, error) {
	d.read++
	if content, ok := d.at[path]; ok && kind == "decision" {
		return step.Record{Content: json.RawMessage(content)}, nil
	}
	return step.Record{}, journal.ErrNoStep
}

func TestLanesAreShownByLabel(t *testing.T) {
	j := &decided{at: map[string]string{
		"all/each":           `["docs/a.pdf",{"text":"` + strings.Repeat("x", 5000) + `"},{"id":"c"},7,"two\nlines"]`,
		"all/each[0]/inner":  `[{"title":"t","name":"n"}]`,
		"all/branch":         `1`,
		"all/loop[1]/each@2": `["again"]`,
	}}
	lanes := LanesOf(j, "run")
	for path, want := range map[string]string{
		"":                           "",
		"all":                        "all",
		"all/each[0]/make":           "all/each[docs/a.pdf]/make",
		"all/each[0]/inner[0]/x~2":   "all/each[docs/a.pdf]/inner[n]/x~2",
		"all/each[1]/make":           "all/each[1]/make", // its item has no name
		"all/each[2]":                "all/each[c]",
		"all/each[3]":                "all/each[7]",
		"all/each[5]":                "all/each[5]",
		"all/branch[1]/make":         "all/branch[1]/make",
		"all/loop[1]/each@2[0]/make": "all/loop[1]/each@2[again]/make",
		`all/kind["a"]/make`:         `all/kind["a"]/make`,
	} {
		if got, err := lanes.Shown(t.Context(), path); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", path, got, err, want)
		}
	}
	if label, err := lanes.Label(t.Context(), "all/each[4]"); label == "" || strings.Contains(label, "\n") || err != nil {
		t.Errorf("%q, %v: want one line", label, err)
	}
	if j.read != 5 {
		t.Errorf("%d records were read, want each of 5 places once", j.read)
	}
}
