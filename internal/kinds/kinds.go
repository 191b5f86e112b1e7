package kinds

import (
	"errors"
	"maps"
	"slices"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/form"
)

const module = "github.com/stonelayer/stone/"

// A Kind describes one kind of capability and reads its configuration. A name with a slash, such as solver/sat, is a variant,
// which is selected by the field named after the kind: {:cap/kind :solver :solver :sat}.
type Kind struct {
	Name string
	// Read reads the fields of a capability. It is nil if the kind has only a configuration section.
	Read func(*Reader, *form.Map, *Reached) Builder
	// Unconfigured is a configuration entry, in EDN, that applies if there is no configuration. If it is "", no entry applies.
	Unconfigured string
	// ReadSection reads the section named Section of a configuration.
	Section     string
	ReadSection func(*Reader, *form.Map)
	// Checks are added to the checks that a configuration can use.
	Checks map[string]call.Check
	// Language is the expression language that the kind provides, or nil.
	Language call.Language
}

// Part makes a Kind usable as a part of a program; see cli.Part.
func (Kind) Part() {}

// A Builder returns the capability with the given metadata. It is called only if the configuration has no faults.
type Builder func(call.Metadata) (call.Capability, error)

// Names of features that are not kinds, for Homes and Missing.
const (
	LegalMove  = "legal-move" // a check
	Expression = "expression" // the expression language for guards and checks
)

// Sections lists the configuration sections that can be read only if a part is linked.
var Sections = []string{"marks", "servers", "telemetry"}

// homes maps the kinds and features to the packages that implement them.
var homes = map[string]string{
	"a2a":        "x/a2a/client",
	"acp":        "x/acp/harness",
	"chess":      "x/solve/uci",
	LegalMove:    "x/solve/uci",
	"mcp":        "x/mcp",
	"search":     "x/retrieve/search",
	"servers":    "x/mcp",
	"marks":      "x/marks",
	"solver/cel": "x/cel",
	Expression:   "x/cel",
	"solver/sat": "x/solve/sat",
	"telemetry":  "x/otlp",
}

// apart contains the packages in homes that belong to a separate module.
var apart = map[string]bool{"x/a2a/client": true}

// Homes returns the packages of this module that implement the given kinds and features, sorted and without duplicates. It ignores
// names that need no package.
func Homes(names ...string) []string {
	var paths []string
	for _, name := range names {
		if home := homes[name]; home != "" && !apart[home] {
			paths = append(paths, module+home)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Packages returns the sorted packages of all kinds and features.
func Packages() []string { return Homes(slices.Collect(maps.Keys(homes))...) }

// Names returns the names of the kinds that can be linked, without the part after the slash.
func Names() []string { return []string{"a2a", "acp", "chess", "mcp", "search", "solver"} }

// Language returns the expression language to be used by an applicator.
func Language(app *call.Applicator) (call.Language, error) {
	if app == nil || app.Language == nil {
		return nil, errors.New("no expression language is linked: pass cli.Main the part of package " + module + homes[Expression] + ", or set Language of the Applicator to its Language")
	}
	return app.Language, nil
}
