package cli

import (
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/cli/internal/publish"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/batches"
	"github.com/stonelayer/stone/internal/cases"
	"github.com/stonelayer/stone/internal/command"
	"github.com/stonelayer/stone/internal/display"
	"github.com/stonelayer/stone/internal/evidence"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/library"
	"github.com/stonelayer/stone/internal/stores"
	"github.com/stonelayer/stone/internal/telemetry"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/tree"
)

// places calls visit for each visible ashlar of a pipeline and its path, parents first. If visit returns false, the ashlars below
// are skipped.
func places(p stone.Ashlar, visit func(path string, a stone.Ashlar) bool) {
	var walk func(path string, a stone.Ashlar)
	walk = func(path string, a stone.Ashlar) {
		if !visit(path, a) {
			return
		}
		for occurrence, c := range tree.Children(a) {
			walk(address.Child(path, c.Name(), occurrence), c)
		}
	}
	walk(address.Escape(p.Name()), tree.Body(p))
}

// A part is an ashlar as an entry in the output of the command names.
type part struct {
	Path     string   `json:"path"`
	Name     string   `json:"name"`
	Form     string   `json:"form"`
	Reads    []string `json:"reads,omitempty"`
	Produces string   `json:"produces,omitempty"`
	Effects  []string `json:"effects,omitempty"`
	Facts    facts    `json:"facts,omitempty"` // facts about the ashlar's Detail; see tree.Facts
	rows     [][2]string
}

// facts maps each name to its values.
type facts map[string][]string

// factsOf returns the facts about an ashlar, and rows for printing them, in which consecutive values with the same name are
// joined.
func factsOf(a stone.Ashlar) (all facts, rows [][2]string) {
	all = facts{}
	for name, value := range tree.Facts(a) {
		all[name] = append(all[name], value)
		if last := len(rows) - 1; last >= 0 && rows[last][0] == name {
			rows[last][1] += ", " + value
		} else {
			rows = append(rows, [2]string{name, value})
		}
	}
	return all, rows
}

func partsOf(p stone.Ashlar) []part {
	parts := []part{}
	places(p, func(path string, a stone.Ashlar) bool {
		one := part{Path: path, Name: a.Name(), Form: a.Form()}
		for _, q := range a.Queries() {
			one.Reads = append(one.Reads, strings.ReplaceAll(q.String(), `"`, ""))
		}
		if t := a.Produces(); t != nil {
			one.Produces = t.Name()
		}
		if a.Form() == "leaf" {
			one.Effects = a.Effects()
		}
		one.Facts, one.rows = factsOf(a)
		parts = append(parts, one)
		return true
	})
	return parts
}

// A block is a title followed by rows of a name and a value, as printed by names and explain.
type block struct {
	title string
	rows  [][2]string
}

// add adds a row to the block, unless the row has no value.
func (b *block) add(name, value string) {
	if value != "" {
		b.rows = append(b.rows, [2]string{name, value})
	}
}

func printBlocks(w io.Writer, all []block) error {
	for i, one := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if _, err := fmt.Fprintln(w, text.Line(one.title)); err != nil {
			return err
		}
		rows := newTable("", "")
		for _, row := range one.rows {
			rows.add("  "+row[0], text.Line(row[1]))
		}
		if err := rows.print(w, 0); err != nil {
			return err
		}
	}
	return nil
}

// A Part is a large extension. A program includes it only if its main function names it; the linker omits all others. Examples
// are cel.Part, mcp.Part, screen.Part, serve.Part, postgres.Part, search.Part, a2a.Parts from another module, and the result of
// [Provide].
type Part interface{ Part() }

// Provide returns the pipeline of a package as a part. The pipeline then answers for capabilities of the kind go whose
// configuration names this package:
//
//	cli.Main(Pipeline, cli.Provide("example.com/triage", triage.Pipeline))
//
// The command stone itself provides all packages that are named in a configuration.
func Provide(name string, from any) Part { return provided{name, from} }

type provided struct {
	name string
	from any
}

func (provided) Part() {}

// linked holds the parts that a program's main function has passed to Main.
type linked struct {
	kinds     kinds.Set
	screen    display.Screen     // nil for none
	server    *publish.Server    // nil for none
	postgres  *stores.Server     // nil for none
	protocols []publish.Protocol // protocols of the server
	library   *library.Library
	commands  command.Commands
	cases     cases.Of // nil for none
	exporter  *telemetry.Exporter
	batches   *batches.Sender
	evidence  *evidence.Files
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
		case cases.Of:
			l.cases = p
		case *library.Library:
			l.library = p
		case command.Commands:
			if l.commands == nil {
				l.commands = command.Commands{}
			}
			maps.Copy(l.commands, p)
		case *evidence.Files:
			l.evidence = p
		case *batches.Sender:
			l.batches = p
		case *telemetry.Exporter:
			l.exporter = p
			l.kinds.Add(p.Kind)
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
