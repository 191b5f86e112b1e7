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

// A block is a title with rows of a name and a value, as names and explain print them.
type block struct {
	title string
	rows  [][2]string
}

// add adds a row, unless it has no value.
func (b *block) add(name, value string) {
	if value != "" {
		b.rows = append(b.rows, [2]string{name, value})
	}
}

func (p part) block() block {
	b := block{title: p.Path}
	b.add("form", p.Form)
	b.add("reads", strings.Join(p.Reads, ", "))
	b.add("produces", p.Produces)
	b.add("effects", strings.Join(p.Effects, ", "))
	return block{b.title, append(b.rows, p.rows...)}
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
