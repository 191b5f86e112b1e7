package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/tree"
)

// places calls visit for every ashlar of a pipeline that people see, with its path, parents
// first. What is below an ashlar is left out if visit returns false.
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

// A part is an ashlar as names shows it.
type part struct {
	Path     string   `json:"path"`
	Name     string   `json:"name"`
	Form     string   `json:"form"`
	Reads    []string `json:"reads,omitempty"`
	Produces string   `json:"produces,omitempty"`
	Effects  []string `json:"effects,omitempty"`
	Facts    facts    `json:"facts,omitempty"` // of its detail, see tree.Facts
	rows     [][2]string
}

// facts are the values of each name.
type facts map[string][]string

// factsOf returns what an ashlar says of itself, also as rows to print: values of one name
// that follow each other share one.
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

// title and table are how a part is printed.
func (p part) title() string { return p.Path }
func (p part) table() [][2]string {
	rows := [][2]string{{"form", p.Form}}
	for _, row := range [][2]string{
		{"reads", strings.Join(p.Reads, ", ")}, {"produces", p.Produces}, {"effects", strings.Join(p.Effects, ", ")},
	} {
		if row[1] != "" {
			rows = append(rows, row)
		}
	}
	return append(rows, p.rows...)
}

// printTables prints a table with two columns under each title.
func printTables[T interface {
	title() string
	table() [][2]string
}](w io.Writer, all []T) error {
	for i, one := range all {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(w, text.Line(one.title())); err != nil {
			return err
		}
		rows := newTable("", "")
		for _, row := range one.table() {
			rows.add("  "+row[0], text.Line(row[1]))
		}
		if err := rows.print(w, 0); err != nil {
			return err
		}
	}
	return nil
}
