package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/internal/config"
	"github.com/stonelayer/stone/internal/text"
)

// staleAfter is the age from which a price should be looked up again.
const staleAfter = 180 * 24 * time.Hour

func (a *app) models() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "models",
		Short: "Show and check the table of models of the configuration",
		Long: "Models prints the table under :prices of the configuration: window, prices in USD per million tokens,\n" +
			"abilities, date, and the capabilities that use each row. It warns about capabilities whose model has\n" +
			"no price, rows that no capability uses, and prices older than 180 days. Nothing is built in.",
		Example: a.example("models", "models --json"),
		Args:    none,
		RunE: func(*cobra.Command, []string) error {
			conf, err := a.configured()
			if err != nil {
				return err
			}
			defer a.closeCalls()
			rows, warnings := modelTable(conf, time.Now())
			for _, w := range warnings {
				a.complain("%s", w)
			}
			if asJSON {
				return output(printJSON(a.Stdout, rows))
			}
			if len(rows) == 0 {
				a.complain("no models in the configuration: add them under :prices")
			}
			return output(printTable(a.Stdout, 0, modelColumns(rows)))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	c.Flags().StringVar(&a.calls.config, "config", "", "read the configuration from `FILE` instead of the nearest .stone/stone.edn")
	return c
}

// modelTable returns the rows, each with the capabilities that use it, and what to check.
func modelTable(conf *config.Config, now time.Time) (rows []config.Model, warnings []string) {
	rows = append([]config.Model{}, conf.Models...)
	for _, r := range slices.Concat(conf.Capabilities, conf.Tools) {
		if r.Model == "" {
			continue
		}
		best := -1
		for i, row := range rows {
			if row.Model == r.Model && (row.Provider == r.Provider || row.Provider == "" && best < 0) {
				best = i
			}
		}
		if best >= 0 {
			rows[best].Caps = append(rows[best].Caps, r.ID)
			continue
		}
		if m, ok := conf.App.Registry.Lookup(r.ID); ok && m.Cost.USD == 0 && m.Cost.In == 0 && m.Cost.Out == 0 {
			warnings = append(warnings, fmt.Sprintf("%s asks %s of %s, which has no price: a budget over USD refuses it", r.ID, r.Model, r.Provider))
		}
	}
	for _, row := range rows {
		if row.Caps == nil {
			warnings = append(warnings, fmt.Sprintf("no capability asks %s", row.Model))
		}
		if day, err := time.Parse(time.DateOnly, row.Date); err == nil && now.Sub(day) > staleAfter {
			warnings = append(warnings, fmt.Sprintf("the price of %s is of %s: look it up again", row.Model, row.Date))
		}
	}
	return rows, warnings
}

func modelColumns(rows []config.Model) []column {
	columns := []column{{name: "MODEL"}, {name: "PROVIDER"}, {name: "WINDOW", right: true}, {name: "IN", right: true}, {name: "OUT", right: true},
		{name: "READ", right: true}, {name: "WRITE", right: true}, {name: "CAN"}, {name: "DATE"}, {name: "CAPABILITIES"}}
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	unless := func(f float64) string { // a zero of these means the price of input
		if f == 0 {
			return ""
		}
		return number(f)
	}
	for _, r := range rows {
		window := ""
		if r.Window > 0 {
			window = strconv.Itoa(r.Window)
		}
		cells := []string{r.Model, r.Provider, window, number(r.In), number(r.Out), unless(r.CacheRead), unless(r.CacheWrite),
			strings.Join(r.Can, " "), r.Date, strings.Join(r.Caps, " ")}
		for i := range columns {
			columns[i].cells = append(columns[i].cells, text.Line(cells[i]))
		}
	}
	return columns
}
