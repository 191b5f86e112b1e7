package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stonelayer/stone/cli/internal/config"
)

// All faults are reported at once, each with its place.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "stone-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "stone.edn")
	text := `{:capabilities {:solver/sat {:cap/kind :solver, :slover :sat}}
 :budget {:max-usd -1}}`
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		fmt.Println(err)
		return
	}
	_, err = config.Load(file, &linked)
	if invalid := (*config.Invalid)(nil); errors.As(err, &invalid) {
		for _, line := range invalid.Lines() {
			fmt.Println(strings.TrimPrefix(line, dir+string(filepath.Separator)))
		}
	}
	// Output:
	// stone.edn:1:29: capabilities.solver/sat.solver: the field "solver" is missing
	// stone.edn:1:49: capabilities.solver/sat.slover: unknown field slover; known are cap/can-produce, cap/cost, cap/effects-allowed, cap/id, cap/intents, cap/kind, cap/limits, cap/needs, cap/tags, cap/version, io/in-schema, io/out-schema, solver; did you mean "solver"?
	// stone.edn:2:20: budget.max-usd: expected a number of at least 0, found -1
}
