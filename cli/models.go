package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/text"
)

// staleAfter is the age from which a row should be looked up again.
const staleAfter = 90 * 24 * time.Hour

func (a *app) models(c *cobra.Command) {
	a.overConfig(c, func(_ context.Context, conf *config.Config, _ []string) error {
		rows, warnings := modelTable(conf, time.Now())
		for _, w := range warnings {
			a.complain("%s", w)
		}
		if len(rows) == 0 && !a.json {
			a.complain("no models in the configuration: add them under :models")
		}
		return a.print(rows, modelRows(rows), 0)
	})
	a.jsonFlag(c.Flags(), "a JSON array")
}

// modelTable returns the rows, each with the capabilities that use it, and what to check.
func modelTable(conf *config.Config, now time.Time) (rows []*config.Model, warnings []string) {
	rows = []*config.Model{}
	for i := range conf.Models {
		rows = append(rows, &conf.Models[i])
	}
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	for i, r := range slices.Concat(conf.Capabilities, conf.Tools) {
		if r.Model == "" {
			continue
		}
		registry := conf.App.Registry
		if i >= len(conf.Capabilities) {
			registry = conf.App.Tools
		}
		m, _ := registry.Lookup(r.ID)
		row := conf.Row(r.Provider, r.Model)
		if row == nil && r.Provider == "" { // recorded answers need no price
			continue
		}
		if row == nil {
			warn("%s asks %s of %s, which has no row under :models", r.ID, r.Model, r.Provider)
			continue
		}
		row.Caps = append(row.Caps, r.ID)
		if row.Price == nil && m.Cost.USD == 0 && m.Cost.In == 0 && m.Cost.Out == 0 {
			warn("%s asks %s of %s, which has no price: a budget over USD refuses it", r.ID, r.Model, r.Provider)
		}
	}
	for _, row := range rows {
		if row.Caps == nil {
			warn("no capability asks %s", row.Model)
		}
		if day, err := time.Parse(time.DateOnly, row.Date); err == nil && now.Sub(day) > staleAfter {
			warn("the row of %s is of %s: look it up again", row.Model, row.Date)
		}
	}
	return rows, warnings
}

func modelRows(rows []*config.Model) *table {
	t := newTable("MODEL", "PROVIDER", ">WINDOW", ">IN", ">OUT", ">READ", ">WRITE", "CAN", "DATE", "CAPABILITIES")
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	unless := func(f float64) string { // a zero of these means the price of input
		if f == 0 {
			return ""
		}
		return number(f)
	}
	for _, r := range rows {
		prices := make([]string, 4)
		if p := r.Price; p != nil {
			prices = []string{number(p.In), number(p.Out), unless(p.CacheRead), unless(p.CacheWrite)}
		}
		cells := slices.Concat([]string{r.Model, r.Provider, unless(float64(r.Window))}, prices, []string{strings.Join(r.Can, " "), r.Date, strings.Join(r.Caps, " ")})
		for i := range cells {
			cells[i] = text.Line(cells[i])
		}
		t.add(cells...)
	}
	return t
}
