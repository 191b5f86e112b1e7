package kinds

import (
	"errors"
	"maps"
	"slices"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/form"
)

const module = "github.com/stonelayer/stone/"

// A Kind reads the capabilities of one kind. A name with a slash, such as solver/sat, is a variant, selected by the field named
// after the kind: {:cap/kind :solver :solver :sat}.
type Kind struct {
	Name string
	// Read reads the fields of the kind; nil if it has only a section.
	Read func(*Reader, *form.Map, *Reached) Builder
	// Unconfigured is a configuration entry, in EDN, for programs without a configuration; "" means none.
	Unconfigured string
	// ReadSection reads the section of a configuration named Section.
	Section     string
	ReadSection func(*Reader, *form.Map)
	// Checks are added to the checks of the configuration.
	Checks map[string]call.Check
	// Language is the language of expressions; nil if the kind has none.
	Language call.Language
}

// Part makes a Kind a part of a program, see cli.Part.
func (Kind) Part() {}

// A Builder builds a capability from its metadata. It is called only if there are no faults.
type Builder func(call.Metadata) (call.Capability, error)

// Features of packages that are not kinds, for Homes and Missing.
const (
	LegalMove  = "legal-move" // the check
	Expression = "expression" // the language of guards and checks
)

// Sections are the sections of a configuration that need a part.
var Sections = []string{"marks", "servers", "telemetry"}

// Rerank is the intent of calls that order the passages of a search.
const Rerank = "search/rerank"

// homes are the packages that implement the kinds and features.
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

// apart lists the homes in separate modules.
var apart = map[string]bool{"x/a2a/client": true}

// Homes returns the packages of this module whose parts the names need, each once, sorted. Names that need none are ignored.
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

// Packages returns the packages of all kinds, sorted.
func Packages() []string { return Homes(slices.Collect(maps.Keys(homes))...) }

// Names returns the kinds that can be linked, without the part after a slash.
func Names() []string { return []string{"a2a", "acp", "chess", "mcp", "search", "solver"} }

// Language returns the language of an applicator.
func Language(app *call.Applicator) (call.Language, error) {
	if app == nil || app.Language == nil {
		return nil, errors.New("no expression language is linked: pass cli.Main the part of package " + module + homes[Expression] + ", or set Language of the Applicator to its Language")
	}
	return app.Language, nil
}
