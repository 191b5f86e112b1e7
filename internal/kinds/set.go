package kinds

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
)

// A Maker is the function of a package that returns its pipeline for the given arguments.
type Maker func(args []string) (stone.Ashlar, error)

// A Set contains the kinds that a program links, and the packages whose pipelines can be used as capabilities. The zero Set is
// empty.
type Set struct {
	kinds    map[string]Kind
	packages map[string]Maker
}

// Add adds a kind.
func (s *Set) Add(k Kind) {
	if s.kinds == nil {
		s.kinds = map[string]Kind{}
	}
	s.kinds[k.Name] = k
}

// Provide adds the pipeline of a package to the set, under the name by which configurations refer to the package.
func (s *Set) Provide(name string, m Maker) {
	if s.packages == nil {
		s.packages = map[string]Maker{}
	}
	s.packages[name] = m
}

// All returns all kinds, sorted by name.
func (s *Set) All() []Kind {
	var all []Kind
	for _, name := range slices.Sorted(maps.Keys(s.kinds)) {
		all = append(all, s.kinds[name])
	}
	return all
}

// Find returns the kind with the given name, and whether the set contains it.
func (s *Set) Find(name string) (Kind, bool) {
	k, ok := s.kinds[name]
	return k, ok && k.Read != nil
}

// Language returns the expression language, or nil if no kind provides one.
func (s *Set) Language() call.Language {
	for _, k := range s.kinds {
		if k.Language != nil {
			return k.Language
		}
	}
	return nil
}

// Provided returns the Maker of a package, or nil if the package is not linked.
func (s *Set) Provided(name string) Maker { return s.packages[name] }

// Unprovided returns the named packages that are not linked, sorted and without duplicates.
func (s *Set) Unprovided(names []string) []string {
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return s.packages[name] != nil })
	slices.Sort(missing)
	return slices.Compact(missing)
}

// Missing returns an error if the named kind or feature exists but is not linked. It returns nil if it is linked or if the name
// is unknown.
func (s *Set) Missing(name string) error {
	home := homes[name]
	for of := range s.kinds {
		if homes[of] == home {
			return nil
		}
	}
	if home == "" {
		return nil
	}
	if apart[home] {
		return fmt.Errorf("%q is not linked into this program: write a program that passes cli.Main the part of package %s, which is a separate module", name, module+home)
	}
	return fmt.Errorf("%q is not linked into this program: pass cli.Main the part of package %s, or the parts of %s for all", name, module+home, module+"cli/all")
}
