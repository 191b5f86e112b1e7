package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/form"
)

const module = "github.com/stonelayer/stone/"

// A Kind reads the capabilities of one kind. A name with a slash, such as solver/sat, is
// one of several of a kind, selected by the field of that name: {:cap/kind :solver
// :solver :sat}.
type Kind struct {
	Name string
	// Read reads the fields of the kind.
	Read func(*Reader, *form.Map, *Reached) Builder
	// Unconfigured is an entry of a configuration, in EDN, for programs without a
	// configuration; "" is none.
	Unconfigured string
	// ReadSection reads the section of a configuration named Section.
	Section     string
	ReadSection func(*Reader, *form.Map)
	// Checks are added to the checks of the configuration.
	Checks map[string]call.Check
}

// A Builder makes a capability of its metadata. It is called only without faults.
type Builder func(call.Metadata) (call.Capability, error)

// Features of packages other than kinds, for Homes and Missing.
const (
	Servers    = "servers"    // the section of a configuration
	LegalMove  = "legal-move" // the check
	Expression = "expression" // the language of guards and checks
)

// homes are the packages in which kinds and their features are registered.
var homes = map[string]string{
	"chess":      "call/uci",
	LegalMove:    "call/uci",
	"mcp":        "call/mcp",
	Servers:      "call/mcp",
	"solver/cel": "call/cel",
	Expression:   "call/cel",
	"solver/sat": "call/sat",
}

// Homes returns the packages to import for names, each once, sorted. Names that need none
// are ignored.
func Homes(names ...string) []string {
	var paths []string
	for _, name := range names {
		if home := homes[name]; home != "" {
			paths = append(paths, module+home)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

var registered = map[string]Kind{}

// Register adds a kind. Call it from init.
func Register(k Kind) {
	if homes[k.Name] == "" {
		panic("kinds: " + k.Name + " has no home")
	}
	registered[k.Name] = k
}

// All returns the registered kinds by their names.
func All() []Kind {
	var all []Kind
	for _, name := range slices.Sorted(maps.Keys(registered)) {
		all = append(all, registered[name])
	}
	return all
}

// Find returns a registered kind.
func Find(name string) (Kind, bool) {
	k, ok := registered[name]
	return k, ok
}

// Names returns the kinds that can be registered, without the part after a slash.
func Names() []string { return []string{"chess", "mcp", "solver"} }

// Missing returns the error for a kind, or its feature, that this program does not link;
// nil if it does, or if the name is unknown.
func Missing(name string) error {
	home := homes[name]
	for of := range registered {
		if homes[of] == home {
			return nil
		}
	}
	if home == "" {
		return nil
	}
	return fmt.Errorf("%q is not linked into this program: add import _ %q, or %q for all", name, module+home, module+"cli/all")
}

// A Guard is a compiled expression that is true or false.
type Guard interface {
	// Variables returns the names of the variables that the expression reads, sorted.
	Variables() []string
	Bool(ctx context.Context, variables map[string]json.RawMessage) (bool, error)
}

// A Formula is a compiled expression of any value.
type Formula interface {
	Eval(ctx context.Context, variables map[string]json.RawMessage) (json.RawMessage, error)
}

// Language compiles expressions.
type Language struct {
	Formula func(text string, variables []string) (Formula, error)
	Guard   func(text string, variables []string) (Guard, error)
	Check   func(text string) (call.Check, call.CheckFacts, error) // over call and out
}

var language *Language

// Speak registers the language of expressions. Call it from init.
func Speak(l Language) { language = &l }

// CompileGuard compiles an expression over variables.
func CompileGuard(text string, variables []string) (Guard, error) {
	if language == nil {
		return nil, Missing(Expression)
	}
	return language.Guard(text, variables)
}

// CompileFormula compiles an expression over variables, of any value.
func CompileFormula(text string, variables []string) (Formula, error) {
	if language == nil {
		return nil, Missing(Expression)
	}
	return language.Formula(text, variables)
}

// CompileCheck compiles an expression over call and out.
func CompileCheck(text string) (call.Check, call.CheckFacts, error) {
	if language == nil {
		return nil, call.CheckFacts{}, Missing(Expression)
	}
	return language.Check(text)
}
