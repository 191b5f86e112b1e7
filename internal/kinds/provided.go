package kinds

import (
	"maps"
	"slices"
	"sync"

	"github.com/stonelayer/stone"
)

// A Maker makes the pipeline of a package of its arguments.
type Maker func(args []string) (stone.Ashlar, error)

var provided struct {
	sync.Mutex
	by map[string]Maker
}

// Provide links the pipeline of a package under the name that configurations use.
func Provide(name string, m Maker) {
	provided.Lock()
	defer provided.Unlock()
	by := maps.Clone(provided.by)
	if by == nil {
		by = map[string]Maker{}
	}
	by[name] = m
	provided.by = by
}

// Provided returns the maker of a package, or nil if it is not linked.
func Provided(name string) Maker {
	provided.Lock()
	defer provided.Unlock()
	return provided.by[name]
}

// Unprovided returns the packages that are not linked, each once, sorted.
func Unprovided(names []string) []string {
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return Provided(name) != nil })
	slices.Sort(missing)
	return slices.Compact(missing)
}
