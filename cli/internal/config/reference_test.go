package config_test

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/docs"
)

// probes are configurations with an unknown field, by the section of the reference that lists the known ones.
var probes = map[string]string{
	"Top level":              `{:?? 1}`,
	"Providers":              `{:providers {:openai {:?? 1}}}`,
	"Limits of a provider":   `{:providers {:openai {:limits {:?? 1}}}}`,
	"Retries of a provider":  `{:providers {:openai {:retry {:?? 1}}}}`,
	"Timeouts of a provider": `{:providers {:openai {:timeouts {:?? 1}}}}`,
	"Cost":                   `{:capabilities {:a {:cap/kind :solver :solver :sat :cap/cost {:?? 1}}}}`,
	"Limits of a capability": `{:capabilities {:a {:cap/kind :solver :solver :sat :cap/limits {:?? 1}}}}`,
	"Kind llm":               `{:capabilities {:a {:cap/kind :llm :provider :openai :model "m" :?? 1}}}`,
	"Prompts":                `{:capabilities {:a {:cap/kind :llm :provider :openai :model "m" :prompts {:?? 1}}}}`,
	"Params":                 `{:capabilities {:a {:cap/kind :llm :provider :openai :model "m" :params {:?? 1}}}}`,
	"Kind answers":           `{:capabilities {:a {:cap/kind :answers :file "f" :?? 1}}}`,
	"Kind command":           `{:capabilities {:a {:cap/kind :command :command ["/bin/true"] :?? 1}}}`,
	"Kind http":              `{:capabilities {:a {:cap/kind :http :url "http://h" :?? 1}}}`,
	"Scope":                  `{:capabilities {:a {:cap/kind :http :url "http://h" :scope {:?? 1}}}}`,
	"Kind mcp":               `{:servers {:s {:url "http://h"}} :capabilities {:a {:cap/kind :mcp :server :s :tool "t" :?? 1}}}`,
	"Kind solver, cel":       `{:capabilities {:a {:cap/kind :solver :solver :cel :expression "1" :?? 1}}}`,
	"Kind solver, sat":       `{:capabilities {:a {:cap/kind :solver :solver :sat :?? 1}}}`,
	"Kind acp":               `{:capabilities {:a {:cap/kind :acp :command ["/bin/true"] :?? 1}}}`,
	"Kind chess":             `{:capabilities {:a {:cap/kind :chess :command ["/bin/true"] :?? 1}}}`,
	"Kind search":            `{:capabilities {:a {:cap/kind :search :?? 1}}}`,
	"Search":                 `{:search {:?? 1}}`,
	"Embedder":               `{:search {:embedder {:provider :openai :model "m" :?? 1}}}`,
	"Kind plan":              `{:capabilities {:a {:cap/kind :plan :file "f" :?? 1}}}`,
	"Kind go":                `{:capabilities {:a {:cap/kind :go :package "p" :?? 1}}}`,
	"Servers":                `{:servers {:s {:command ["/bin/true"] :?? 1} :t {:url "https://h" :?? 1}}}`,
	"Sandbox":                `{:servers {:s {:command ["/bin/true"] :sandbox {:?? 1}}}}`,
	"OAuth":                  `{:servers {:s {:url "http://h" :oauth {:?? 1}}}}`,
	"Models":                 `{:models [{:model "m" :date "2026-11-21" :?? 1}]}`,
	"Intents":                `{:intents {:a {:?? 1}}}`,
	"Checks":                 `{:checks {:a {:?? 1}}}`,
	"Policy":                 `{:policy {:?? 1}}`,
	"Rules":                  `{:policy {:default {:?? 1}}}`,
	"Rules of an intent":     `{:policy {:intents {:a {:?? 1}}}}`,
	"Done":                   `{:policy {:default {:done {:?? 1}}}}`,
	"Retry":                  `{:policy {:default {:retry {:?? 1}}}}`,
	"Judge":                  `{:policy {:default {:judge {:?? 1}}}}`,
	"Routing":                `{:routing {:?? 1}}`,
	"Principal":              `{:principal {:id "a" :?? 1}}`,
	"Role of an effect":      `{:roles {:net {:?? 1}}}`,
	"Budget":                 `{:budget {:?? 1}}`,
	"Budgets":                `{:budgets {:b {:max-usd 1 :?? 1}}}`,
	"Limits of plans":        `{:limits {:?? 1}}`,
	"Webhooks":               `{:webhooks {:w {:url "http://h" :secret {:env "A"} :?? 1}}}`,
	"Serve":                  `{:serve {:?? 1}}`,
	"Telemetry":              `{:telemetry {:url "http://h" :?? 1}}`,
}

// TestReference holds the page about the configuration to the fields that the errors list.
func TestReference(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	has := docs.Keys(string(page))
	common := has["Capabilities"] // of all kinds
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if _, probed := probes[name]; !probed && len(has[name]) > 0 && name != "Capabilities" {
			t.Errorf("the section %q has fields, and no probe", name)
		}
	}
	known := regexp.MustCompile(`unknown field \?\?; known are ([^\n]*)`)
	for name, probe := range probes {
		file := t.TempDir() + "/stone.edn"
		if err := os.WriteFile(file, []byte(probe), 0o600); err != nil {
			t.Fatal(err)
		}
		var invalid *config.Invalid
		if _, err := config.Load(file, &linked); !errors.As(err, &invalid) {
			t.Errorf("%s: %s: %v", name, probe, err)
			continue
		}
		want := map[string]bool{}
		for _, m := range known.FindAllStringSubmatch(strings.Join(invalid.Lines(), "\n"), -1) {
			list, _, _ := strings.Cut(m[1], ";")
			for _, field := range strings.Split(list, ", ") {
				want[field] = true
			}
		}
		if strings.HasPrefix(name, "Kind ") {
			for _, field := range common {
				if !want[field] {
					t.Errorf("%s has no field %s, which all kinds are said to have", name, field)
				}
				delete(want, field)
			}
		}
		got := has[name]
		if fields := slices.Sorted(maps.Keys(want)); !slices.Equal(got, fields) {
			t.Errorf("%s: the page has %q, the errors list %q ", name, got, fields)
		}
	}
}
