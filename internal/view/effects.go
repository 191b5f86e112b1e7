package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/journal"
)

// SideEffects lists the side effects that repeated steps have declared, with one line for each place.
func SideEffects(p stone.Ashlar, steps []journal.Step) []string {
	of := map[string]string{} // effects by place
	var walk func(leaf stone.Ashlar, path string)
	walk = func(leaf stone.Ashlar, path string) {
		for occurrence, c := range tree.Children(leaf) {
			walk(c, address.Child(path, c.Name(), occurrence))
		}
		if leaf.Form() != "leaf" {
			return
		}
		var does []string
		for _, e := range leaf.Effects() {
			if e != effect.None && e != effect.FSRead && e != effect.Ask {
				does = append(does, e)
			}
		}
		if unknown := leaf.Undeclared(); len(unknown) > 0 {
			does = append(does, "unknown ("+strings.Join(unknown, ", ")+" declares none)")
		}
		if len(does) > 0 {
			of[path] = strings.Join(does, ", ")
		}
	}
	walk(tree.Body(p), address.Escape(p.Name()))
	times, tools := map[string]int{}, map[string]int{}
	for _, s := range steps {
		if s.Kind == "leaf" {
			times[address.Place(s.Path)]++
		} else if IsToolCall(s) {
			tools[address.Place(address.Parent(s.Path))]++
		}
	}
	var all []string
	for _, place := range slices.Sorted(maps.Keys(times)) {
		does, known := of[place]
		if !known && tools[place] == 0 {
			continue
		}
		said := address.Readable(place)
		if n := times[place]; n > 1 {
			said += fmt.Sprintf(" (%d times)", n)
		}
		if n := tools[place]; n > 0 {
			said += ", with " + text.Plural(n, "tool call")
		}
		if known {
			said += ": " + does
		}
		all = append(all, said)
	}
	return all
}
