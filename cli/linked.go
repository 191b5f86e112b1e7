package cli

import (
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli/internal/publish"
	"github.com/stonelayer/stone/internal/display"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/library"
	"github.com/stonelayer/stone/internal/stores"
)

// A Part is something large that a program has only if its main function names it: cel.Part and mcp.Part of
// packages below call, screen.Part and serve.Part of those below cli, postgres.Part of package journal/postgres, those
// of packages below x, such as search.Part, what [Provide] returns, and the parts of other modules, such as a2a.Parts.
// The linker leaves out the others.
type Part interface{ Part() }

// Provide returns the pipeline of a package as a part. It answers for capabilities of kind
// go whose configuration names the package:
//
//	cli.Main(Pipeline, cli.Provide("example.com/triage", triage.Pipeline))
//
// The command stone provides what a configuration names by itself.
func Provide(name string, from any) Part { return provided{name, from} }

type provided struct {
	name string
	from any
}

func (provided) Part() {}

// linked are the parts of a program.
type linked struct {
	kinds     kinds.Set
	screen    display.Screen     // nil for none
	server    *publish.Server    // nil for none
	postgres  *stores.Server     // nil for none
	protocols []publish.Protocol // of the server
	library   *library.Library
}

func link(parts []Part) (l linked, err error) {
	for _, p := range parts {
		switch p := p.(type) {
		case kinds.Kind:
			l.kinds.Add(p)
		case provided:
			l.kinds.Provide(p.name, func(args []string) (stone.Ashlar, error) { return pipeline(p.from, args) })
		case display.Screen:
			l.screen = p
		case *publish.Server:
			l.server = p
		case *library.Library:
			l.library = p
		case publish.Protocol:
			l.protocols = append(l.protocols, p)
		case stores.Server:
			l.postgres = &p
		case stores.Imported:
		default:
			return l, fmt.Errorf("cli: %T is not a part: pass values such as screen.Part or what cli.Provide returns", p)
		}
	}
	return l, nil
}
