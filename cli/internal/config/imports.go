package config

import (
	"maps"
	"slices"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/kinds"
)

// Imports returns the packages that a program must link to be used with the
// configuration in file or, if file is "", with the nearest one to the working
// directory. It does not check the configuration: of a faulty one it returns the
// packages that it can find. configured is false without a configuration; the packages
// then belong to the capabilities that need no configuration.
func Imports(file string, linked *kinds.Set) (paths []string, configured bool) {
	if file == "" {
		dir, err := Find(".")
		if err == nil && dir != "" {
			file, err = fileIn(dir)
		}
		if err != nil {
			return nil, true // the program reports the error
		}
	}
	if file == "" {
		var names []string
		for _, k := range linked.All() {
			if k.Unconfigured != "" {
				names = append(names, k.Name)
			}
		}
		return kinds.Homes(names...), false
	}
	v, err := parse(file)
	if err != nil {
		return nil, true
	}
	return kinds.Homes(slices.Collect(maps.Keys(needed(v)))...), true
}

// needed returns the names in a configuration that may need a package.
func needed(v edn.Value) map[string]bool {
	names := map[string]bool{}
	if _, ok := v.Field("servers"); ok {
		names["servers"] = true
	}
	for _, key := range []string{"capabilities", "tools"} {
		all, _ := v.Field(key)
		for _, of := range all.Entries() {
			name := field(of, "cap/kind")
			if name == "solver" {
				name += "/" + field(of, "solver")
			}
			names[name] = true
			produces, _ := of.Field("cap/can-produce")
			for _, p := range produces.Elements() {
				if text, _ := p.Name(); text == "plan" {
					names[kinds.Expression] = true
				}
			}
			if name == "plan" {
				names[kinds.Expression] = true
			}
		}
	}
	checks, _ := v.Field("checks")
	for _, of := range checks.Entries() {
		if of.Kind() == edn.KindString {
			names[kinds.Expression] = true
		}
	}
	if mentions(v, kinds.LegalMove) {
		names[kinds.LegalMove] = true
	}
	return names
}

// mentions reports whether a value is the name or contains it.
func mentions(v edn.Value, name string) bool {
	switch v.Kind() {
	case edn.KindMap:
		for _, of := range v.Entries() {
			if mentions(of, name) {
				return true
			}
		}
	case edn.KindVector, edn.KindSet, edn.KindList:
		for _, of := range v.Elements() {
			if mentions(of, name) {
				return true
			}
		}
	default:
		text, ok := v.Name()
		return ok && text == name
	}
	return false
}

// field returns the name in a field, "" for none.
func field(v edn.Value, key string) string {
	f, _ := v.Field(key)
	name, _ := f.Name()
	return name
}
