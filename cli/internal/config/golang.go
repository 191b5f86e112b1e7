package config

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/reasons"
)

// golang reads a capability that is a pipeline or an agent of a Go package. If the program does not link the package, the
// capability is unavailable.
func (r *reader) golang(m *form.Map, at *kinds.Reached) kinds.Builder {
	var args []string
	var in, out string
	m.Need("package")
	if kinds.SomeText(m, "package", &at.Package); at.Package != "" {
		r.Reach(m.At("package"), "compiles and runs the Go package", at.Package)
	}
	m.At("args").Texts(&args)
	m.At("in").Name(&in)
	m.At("out").Name(&out)
	return func(meta call.Metadata) (call.Capability, error) {
		make := r.linked.Provided(at.Package)
		if make == nil {
			return call.Capability{Metadata: meta, Invoke: func(context.Context, *call.Request) (*call.Reply, error) {
				return nil, &call.Error{Type: reasons.Unavailable, Message: fmt.Sprintf("the package %s is not linked into this program: pass cli.Provide(%[1]q, …) to cli.Main, or use the command stone", at.Package)}
			}}, nil
		}
		p, err := make(args)
		if err != nil {
			return call.Capability{}, fmt.Errorf("the package %s: %w", at.Package, err)
		}
		reads, err := readType(p, in)
		if err != nil {
			return call.Capability{}, fmt.Errorf("the package %s: %w", at.Package, err)
		}
		writes, err := writtenType(p, out)
		if err != nil {
			return call.Capability{}, fmt.Errorf("the package %s: %w", at.Package, err)
		}
		return call.Pipeline(meta, p, reads, writes), nil
	}
}

// request is the input type of a pipeline without inputs.
var request = dag.NewType[json.RawMessage]("request")

// readType returns the input type of a pipeline: the type with the given name, or the only type that the pipeline needs.
func readType(p stone.Ashlar, name string) (dag.AnyType, error) {
	var types []dag.AnyType
	for _, q := range p.QueriesAll() {
		if t := q.Type(); t != nil && (t.Name() == name || name == "" && q.IsNearest() && !q.IsOptional()) {
			types = append(types, t)
		}
	}
	switch {
	case len(types) > 1 && name == "":
		return nil, fmt.Errorf("its Pipeline reads %s: name the one that is the input with :in", namesOf(types))
	case len(types) > 0:
		return types[0], nil
	case name != "":
		return nil, fmt.Errorf("its Pipeline reads no %s", name)
	}
	return request, nil
}

// writtenType returns the answer type of a pipeline: the type with the given name, or the type of the last node that the pipeline
// writes.
func writtenType(p stone.Ashlar, name string) (dag.AnyType, error) {
	all := p.ProducesAll()
	if name == "" {
		if t := lastOf(p); t != nil {
			return t, nil
		}
		return nil, fmt.Errorf("its Pipeline may end with several types: name the answer among %s with :out", namesOf(all))
	}
	if i := slices.IndexFunc(all, func(t dag.AnyType) bool { return t.Name() == name }); i >= 0 {
		return all[i], nil
	}
	return nil, fmt.Errorf("its Pipeline produces no %s, but %s", name, namesOf(all))
}

// lastOf returns the type of the last node that a pipeline writes, or nil if the type depends on branches.
func lastOf(p stone.Ashlar) dag.AnyType {
	children := p.Children()
	switch p.Form() {
	case "leaf", "scoped":
		return p.Produces()
	case "seq", "flow", "loop", "reduce":
		if n := len(children); n > 0 {
			return lastOf(children[n-1])
		}
	}
	return nil
}

func namesOf(types []dag.AnyType) string {
	var names []string
	for _, t := range types {
		names = append(names, t.Name())
	}
	return strings.Join(names, ", ")
}

// Imports returns the packages that a program must link to use the configuration in file. If file is "", it is the configuration
// nearest to the working directory. The configuration is not checked: if it is faulty, Imports returns the packages that it can
// find. Without a configuration, configured is false, and the packages provide the capabilities that need no configuration.
func Imports(file string, linked *kinds.Set) (paths []string, configured bool) {
	if file == "" {
		dir, err := Find(".")
		if err == nil && dir != "" {
			file, err = fileIn(dir)
		}
		if err != nil {
			return nil, true // the program will report the error
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

// needed returns the names in a configuration that may require a package to be linked.
func needed(v edn.Value) map[string]bool {
	names := map[string]bool{}
	for _, section := range kinds.Sections {
		if _, ok := v.Field(section); ok {
			names[section] = true
		}
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

// mentions reports whether a value is the given name or contains it.
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

// field returns the name that a field contains, or "" if it contains none.
func field(v edn.Value, key string) string {
	f, _ := v.Field(key)
	name, _ := f.Name()
	return name
}
