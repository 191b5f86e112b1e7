package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/text"
)

// staleAfter is the age after which a row of the table should be checked.
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

// modelTable returns the rows of the model table, each with the capabilities that use it, and warnings about the table.
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
			warn("%s calls %s of %s, which has no row under :models", r.ID, r.Model, r.Provider)
			continue
		}
		row.Caps = append(row.Caps, r.ID)
		if row.Price == nil && m.Cost.USD == 0 && m.Cost.In == 0 && m.Cost.Out == 0 {
			warn("%s calls %s of %s, which has no price: a budget over USD refuses it", r.ID, r.Model, r.Provider)
		}
	}
	for _, row := range rows {
		if row.Caps == nil {
			warn("no capability calls %s", row.Model)
		}
		if day, err := time.Parse(time.DateOnly, row.Date); err == nil && now.Sub(day) > staleAfter {
			warn("the row of %s dates from %s: check its figures again", row.Model, row.Date)
		}
	}
	return rows, warnings
}

func modelRows(rows []*config.Model) *table {
	t := newTable("MODEL", "PROVIDER", ">WINDOW", ">IN", ">OUT", ">READ", ">WRITE", "CAN", "DATE", "CAPABILITIES")
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	unless := func(f float64) string { // zero means that the price of input applies
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

// probeTime is the time limit for checking whether a capability is available.
const probeTime = 2 * time.Second

func (a *app) caps(c *cobra.Command) {
	var noProbe bool
	a.overConfig(c, func(ctx context.Context, conf *config.Config, _ []string) error {
		all := listed(conf)
		if !noProbe {
			probe(ctx, all, a.untrusted())
		}
		return a.printCaps(all)
	})
	f := c.Flags()
	a.jsonFlag(f, "a JSON array")
	f.BoolVar(&noProbe, "no-probe", false, "do not check availability")
}

// A capability is an entry in the output of caps.
type capability struct {
	call.Metadata
	Tool   bool   `json:"tool,omitempty"`
	At     string `json:"at,omitempty"`
	Priced string `json:"priced,omitempty"`
	State  string `json:"state"` // "up", "down" or "?"
	Why    string `json:"why,omitempty"`

	reached kinds.Reached
}

func listed(conf *config.Config) []capability {
	all := []capability{}
	add := func(from *call.Registry, reached []kinds.Reached, tool bool) {
		for _, r := range reached {
			if m, ok := from.Lookup(r.ID); ok {
				all = append(all, capability{Metadata: m, Tool: tool, At: r.At, Priced: r.Priced, State: "?", reached: r})
			}
		}
	}
	add(conf.App.Registry, conf.Capabilities, false)
	add(conf.App.Tools, conf.Tools, true)
	return all
}

// untrusted returns an error if a configuration was found that the user has not trusted.
func (a *app) untrusted() error {
	f, err := a.foundConfig()
	if err != nil {
		return err
	}
	return f.trusted()
}

// probe checks concurrently whether the capabilities are available. It does not connect to untrusted servers.
func probe(ctx context.Context, all []capability, untrusted error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var done sync.WaitGroup
	for i := range all {
		done.Go(func() {
			c := &all[i]
			if untrusted != nil && kinds.Host(c.reached.At) != "" {
				c.Why = "not tried: " + untrusted.Error()
				return
			}
			c.State = "up"
			if err := c.reached.Probe(ctx); err != nil {
				c.State, c.Why = "down", err.Error()
			}
		})
	}
	done.Wait()
}

func (a *app) printCaps(all []capability) error {
	if len(all) == 0 && !a.json {
		_, err := fmt.Fprintln(a.Stdout, "No capabilities are configured.")
		return output(err)
	}
	rows := newTable("ID", "KIND", "STATE", "INTENTS", "COST", "LIMITS", "NEEDS", "EFFECTS")
	for _, c := range all {
		kind, intents, id := c.Kind, words(c.Intents), c.ID
		if c.Tool {
			kind += " (tool)"
		}
		if c.Intents == nil {
			intents = "any"
		}
		if c.Version != "" {
			id += "@" + c.Version
		}
		cells := []string{id, kind, c.State, intents, shownCost(c), shownLimits(c.Limits), words(c.Needs), words(c.Effects)}
		for i, cell := range cells {
			cells[i] = text.Line(cell)
		}
		rows.add(cells...)
	}
	err := a.print(all, rows, 0)
	for _, c := range all {
		why := c.Why
		if c.State == "down" {
			why = "not available: " + why
		}
		if why != "" && !a.json && err == nil {
			_, err = fmt.Fprintln(a.Stdout, text.Line(c.ID+" is "+why))
		}
	}
	return output(err)
}

func shownCost(c capability) string {
	var parts []string
	if c.Cost.USD > 0 {
		parts = append(parts, "$"+money.Exact(c.Cost.USD))
	}
	if c.Cost.In > 0 || c.Cost.Out > 0 {
		tokens := fmt.Sprintf("$%s/$%s per Mtok", money.Exact(c.Cost.In), money.Exact(c.Cost.Out))
		if c.Priced != "" {
			tokens += " of " + c.Priced
		}
		parts = append(parts, tokens)
	}
	if c.Cost.Latency > 0 {
		parts = append(parts, c.Cost.Latency.String())
	}
	return words(parts)
}

func shownLimits(l call.Limits) string {
	var parts []string
	if l.Timeout > 0 {
		parts = append(parts, l.Timeout.String())
	}
	if l.Concurrency > 0 {
		parts = append(parts, fmt.Sprintf("%d at once", l.Concurrency))
	}
	if l.PerMinute > 0 {
		parts = append(parts, fmt.Sprintf("%d/min", l.PerMinute))
	}
	return words(parts)
}
