package sat

import (
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
)

// Part adds solver/sat to a program.
var Part = kinds.Kind{Name: "solver/sat", Read: readKind, Unconfigured: "{:cap/kind :solver :solver :sat}"}

func readKind(_ *kinds.Reader, m *form.Map, _ *kinds.Reached) kinds.Builder {
	var c Config
	m.At("variables").Int(&c.Variables, 1, 1<<30)
	m.At("literals").Int(&c.Literals, 1, 1<<30)
	m.At("conflicts").Int(&c.Conflicts, 1, 1<<30)
	return func(meta call.Metadata) (call.Capability, error) { return New(meta, c), c.Check() }
}
