package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// labelsOf returns a function that returns an address with lane labels in place of lane numbers, as failures and pages show it.
func labelsOf(ctx context.Context, s *store, run string) func(string) string {
	lanes := view.LanesOf(s, run)
	return func(path string) string {
		shown, _ := lanes.Shown(ctx, path) // labels that cannot be read are omitted
		return shown
	}
}

// spotOf returns the address in a run to which a word refers: a step, or a lane, a fan-out or another place that contains steps.
// The word is an address or the end of one, in any form that a command or a page prints, or a prefix of a node's id.
func spotOf(run string, steps []journal.Step, labelled func(string) string, word string) (string, error) {
	var paths []string
	for _, s := range steps {
		paths = append(paths, s.Path)
	}
	ids := func(string) []string {
		var all []string
		for _, s := range steps {
			if s.Node != (dag.ID{}) && idPrefix.MatchString(word) && strings.HasPrefix(s.Node.String(), word) {
				all = append(all, s.Path)
			}
		}
		return all
	}
	ends := func(list func() []string, as func(string) string) func(string) []string {
		return func(word string) []string {
			fits := matching(list(), func(path string) bool { return as(path) == word })
			if len(fits) == 0 {
				fits = matching(list(), func(path string) bool { return strings.HasSuffix(as(path), "/"+word) })
			}
			return fits
		}
	}
	same := func(path string) string { return path }
	recorded, all := func() []string { return paths }, func() []string { return around(paths) }
	ways := []func(string) []string{
		ends(recorded, same), ends(recorded, address.Readable), ids, ends(all, same), ends(all, address.Readable),
		ends(all, func(path string) string { return address.Readable(labelled(path)) }),
		ends(all, func(path string) string { return address.Readable(address.Place(path)) }), // progress shows lanes as numbers
	}
	words := []string{word}
	if row := strings.LastIndex(word, "] "); row > 0 { // the row of a lane: address and label
		words = append(words, word[:row+1])
	}
	for _, word := range words {
		for _, way := range ways {
			switch fits := way(word); len(fits) {
			case 0:
			case 1:
				return fits[0], nil
			default:
				return "", ambiguous(run, steps, word, fits)
			}
		}
	}
	near := suggest.Closest(word, func(yield func(string) bool) {
		for _, path := range paths {
			if !yield(address.Readable(path)) || !yield(address.Readable(address.Last(path))) {
				return
			}
		}
	})
	if near != "" {
		return "", fmt.Errorf("run %s has no step or node %q: did you mean %s?", run, word, near)
	}
	return "", fmt.Errorf("run %s has no step or node %q: run show without a name to list them", run, word)
}

// matching returns the paths that fits accepts, each once and in order.
func matching(paths []string, fits func(string) bool) (all []string) {
	for _, path := range paths {
		if fits(path) && !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}

// around returns the addresses of the given steps and of all places that contain them.
func around(paths []string) (all []string) {
	seen := map[string]bool{}
	for _, path := range paths {
		for at := path; at != "" && !seen[at]; {
			seen[at] = true
			all = append(all, at)
			if cut := strings.LastIndexByte(at, '['); strings.HasSuffix(at, "]") && cut > strings.LastIndexByte(at, '/') {
				at = at[:cut]
			} else {
				at = address.Parent(at)
			}
		}
	}
	return all
}

func ambiguous(run string, steps []journal.Step, word string, fits []string) error {
	var names []string
	for _, path := range fits[:min(len(fits), maxLost)] {
		name := address.Readable(path)
		if i := slices.IndexFunc(steps, func(s journal.Step) bool { return s.Path == path && s.Node != (dag.ID{}) }); i >= 0 {
			name = short(steps[i].Node) + " " + name
		}
		names = append(names, name)
	}
	return fmt.Errorf("%q matches %d places of run %s: name one by its id or its whole path: %s", word, len(fits), run, strings.Join(names, ", "))
}
