package schema

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/stonelayer/stone/internal/pattern"
)

// The library compiles schemas and checks the keywords about a value itself. The walk from schema to schema is done here, because
// a schema of 75 bytes can make the library take time and memory exponential in the depth of the value. Here, a referenced schema
// is applied to a value only once, and its verdict is kept.
const (
	// stepLimit limits how many times one validation applies a schema to a value.
	stepLimit = 10_000_000
	// depthLimit limits the nesting of schemas and values.
	depthLimit = 40_000
	// errorLimit limits the number of errors that are kept. Errors at deep places lower the limit.
	errorLimit = 1000
)

// A walk applies a schema to a value. The first walk determines only the verdict. If the value does not fit, a second walk,
// guided by the first, collects the errors.
type walk struct {
	ctx   context.Context
	graph *graph
	known map[visit]*verdict // verdicts of referenced schemas on arrays and objects
	here  map[visit]*verdict // verdicts on a current value that is neither an array nor an object
	at    []string           // the location of the current value
	scope *scope

	explain bool
	errors  []*jsonschema.ValidationError // the errors of the current schema
	kept    int                           // the number of errors kept so far

	steps, depth int
	backtracked  time.Duration // the total for all matches
	stop         error         // why ctx or a limit ended the walk
}

// A visit is the application of a schema to a value. Arrays and objects of a decoded document are identified by their addresses.
type visit struct {
	schema *jsonschema.Schema
	value  unsafe.Pointer
	scope  *scope
}

type verdict struct {
	running   bool // the visit is in progress: a schema that applies itself to the same value would never end
	found, ok bool
	seen      *seen // the evaluated parts, if some keyword needs them
}

// A scope is the list of resources that a walk has entered, outermost first. Dynamic references depend on it. Equal scopes are
// the same pointer.
type scope struct {
	parent   *scope
	resource *resource
	inner    map[*resource]*scope
}

func (s *scope) enter(r *resource) *scope {
	for outer := s; outer != nil; outer = outer.parent {
		if outer.resource == r {
			return s
		}
	}
	if s.inner == nil {
		s.inner = map[*resource]*scope{}
	}
	if s.inner[r] == nil {
		s.inner[r] = &scope{parent: s, resource: r}
	}
	return s.inner[r]
}

// validate returns the error that describes why a document does not fit, or nil if it fits. The second result is the cause of
// ctx, or the error for an exceeded limit.
func (g *graph) validate(ctx context.Context, document any) (*jsonschema.ValidationError, error) {
	w := &walk{ctx: ctx, graph: g, known: map[visit]*verdict{}, scope: &scope{}}
	ok := w.on(g.root, document, nil)
	if w.stop != nil || ok {
		return nil, w.stop
	}
	w.explain, w.steps = true, 0
	w.on(g.root, document, nil)
	return &jsonschema.ValidationError{SchemaURL: g.root.Location, ErrorKind: &kind.Schema{Location: g.root.Location}, Causes: w.errors}, w.stop
}

// onward counts a step and reports whether the walk continues.
func (w *walk) onward() bool {
	w.steps++
	switch {
	case w.stop != nil:
	case w.steps > stepLimit:
		w.stop = &ValidationError{[]Problem{{Message: fmt.Sprintf("too large to validate: more than %d comparisons with the schema", stepLimit)}}}
	case w.depth > depthLimit:
		w.stop = &ValidationError{[]Problem{{Message: "nested too deeply to validate"}}}
	case w.steps%256 == 0:
		w.stop = context.Cause(w.ctx)
	}
	return w.stop == nil && (!w.explain || w.kept < errorLimit)
}

// fail records an error at the current value, if the walk collects errors, and returns false.
func (w *walk) fail(s *jsonschema.Schema, k jsonschema.ErrorKind, causes ...*jsonschema.ValidationError) bool {
	if w.explain && w.kept < errorLimit {
		w.kept += 1 + len(w.at)/64
		w.errors = append(w.errors, &jsonschema.ValidationError{SchemaURL: s.Location, InstanceLocation: slices.Clone(w.at), ErrorKind: k, Causes: causes})
	}
	return false
}

// quietly runs do without collecting errors.
func (w *walk) quietly(do func() bool) bool {
	explain := w.explain
	w.explain = false
	ok := do()
	w.explain = explain
	return ok
}

// causes returns the errors that do records.
func (w *walk) causes(do func()) []*jsonschema.ValidationError {
	outer := w.errors
	w.errors = nil
	do()
	found := w.errors
	w.errors = outer
	return found
}

// child applies a schema to a value directly below the current one.
func (w *walk) child(s *jsonschema.Schema, v any, token string) bool {
	here := w.here
	w.here = nil
	w.at = append(w.at, token)
	ok := w.on(s, v, nil)
	w.at = w.at[:len(w.at)-1]
	w.here = here
	return ok
}

// apart applies a schema to a value that is not part of the document.
func (w *walk) apart(s *jsonschema.Schema, v any) (bool, []*jsonschema.ValidationError) {
	at, here := w.at, w.here
	w.at, w.here = nil, nil
	var ok bool
	found := w.causes(func() { ok = w.on(s, v, nil) })
	w.at, w.here = at, here
	return ok, found
}

// on applies a schema to the current value. If the value fits, its evaluated parts are added to
// into, unless that is nil.
func (w *walk) on(s *jsonschema.Schema, v any, into *seen) bool {
	if !w.onward() {
		return false
	}
	if s.Bool != nil {
		return *s.Bool || w.fail(s, &kind.FalseSchema{})
	}
	about, outer := w.graph.about[s], w.scope
	if w.graph.dynamic {
		w.scope = outer.enter(about.resource)
	}
	w.depth++
	var ok bool
	if about.referred {
		ok = w.once(s, about.own, v, into)
	} else {
		ok = w.apply(s, about.own, v, into)
	}
	w.depth--
	w.scope = outer
	return ok
}

// once applies a referenced schema, but only once to each value.
func (w *walk) once(s, own *jsonschema.Schema, v any, into *seen) bool {
	key := visit{schema: s, value: identity(v), scope: w.scope}
	known := &w.known
	if key.value == nil {
		known = &w.here
	}
	if *known == nil {
		*known = map[visit]*verdict{}
	}
	is := (*known)[key]
	if is == nil {
		is = &verdict{}
		(*known)[key] = is
	} else if is.running {
		return w.fail(s, &kind.RefCycle{URL: s.Location})
	}
	if !is.found || w.explain && !is.ok || is.ok && into != nil && is.seen == nil {
		is.running = true
		if into != nil && is.seen == nil {
			is.seen = &seen{}
		}
		is.ok = w.apply(s, own, v, is.seen)
		is.running, is.found = false, true
	}
	if is.ok && into != nil {
		into.add(is.seen)
	}
	return is.ok
}

// apply applies the keywords of a schema. If the walk collects no errors, it stops at the first
// keyword that does not fit.
func (w *walk) apply(s, own *jsonschema.Schema, v any, into *seen) bool {
	if s.Ref != nil && s.DraftVersion < 2019 {
		return w.refer(s, s.Ref, "$ref", v, into)
	}
	ok := true
	if own != nil {
		var enough bool
		if ok, enough = w.own(own, v); enough {
			return false
		}
	}
	var evaluated *seen
	if into != nil || s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil {
		evaluated = &seen{}
	}
	ok = w.refs(s, v, evaluated) && ok
	if !ok && !w.explain {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		ok = w.object(s, v, evaluated) && ok
	case []any:
		ok = w.array(s, v, evaluated) && ok
	case string:
		ok = w.text(s, v) && ok
	}
	if !ok && !w.explain {
		return false
	}
	ok = w.combined(s, v, evaluated) && ok
	if s.If != nil {
		next := s.Else
		if w.quietly(func() bool { return w.on(s.If, v, evaluated) }) {
			next = s.Then
		}
		ok = (next == nil || w.on(next, v, evaluated)) && ok
	}
	ok = w.unevaluated(s, v, evaluated) && ok
	if ok && into != nil {
		into.add(evaluated)
	}
	return ok
}

// own checks the keywords about the value itself. Enough means that no other keyword need be checked: either the walk collects no
// errors, or the value has the wrong type, format or constant.
func (w *walk) own(s *jsonschema.Schema, v any) (ok, enough bool) {
	err := s.Validate(v)
	if err == nil {
		return true, false
	}
	if !w.explain {
		return false, true
	}
	for _, cause := range err.(*jsonschema.ValidationError).Causes {
		switch cause.ErrorKind.(type) {
		case *kind.Type, *kind.Const, *kind.Enum, *kind.Format:
			enough = true
		}
		w.fail(s, cause.ErrorKind, cause.Causes...)
	}
	return false, enough
}

// refs follows the references of a schema.
func (w *walk) refs(s *jsonschema.Schema, v any, into *seen) bool {
	ok := s.Ref == nil || w.refer(s, s.Ref, "$ref", v, into)
	if to := s.RecursiveRef; to != nil {
		if to.RecursiveAnchor {
			for outer := w.scope; outer != nil; outer = outer.parent {
				if outer.resource != nil && outer.resource.recursive != nil {
					to = outer.resource.recursive
				}
			}
		}
		ok = w.refer(s, to, "$recursiveRef", v, into) && ok
	}
	if s.DynamicRef != nil {
		to := s.DynamicRef.Ref
		if name := s.DynamicRef.Anchor; name != "" && to.DynamicAnchor == name {
			for outer := w.scope; outer != nil; outer = outer.parent {
				if outer.resource != nil && outer.resource.anchors[name] != nil {
					to = outer.resource.anchors[name]
				}
			}
		}
		ok = w.refer(s, to, "$dynamicRef", v, into) && ok
	}
	return ok
}

// refer applies the target of a reference.
func (w *walk) refer(s, to *jsonschema.Schema, keyword string, v any, into *seen) bool {
	if !w.explain {
		return w.on(to, v, into)
	}
	var ok bool
	if found := w.causes(func() { ok = w.on(to, v, into) }); len(found) > 0 {
		w.fail(s, &kind.Reference{Keyword: keyword, URL: to.Location}, found...)
	}
	return ok
}

// identity returns the address of an array or object, or nil for other values.
func identity(v any) unsafe.Pointer {
	switch v := v.(type) {
	case map[string]any:
		return reflect.ValueOf(v).UnsafePointer()
	case []any:
		if len(v) > 0 {
			return unsafe.Pointer(unsafe.SliceData(v))
		}
	}
	return nil
}

// text checks the pattern and the content of a string.
func (w *walk) text(s *jsonschema.Schema, text string) bool {
	ok := true
	if s.Pattern != nil && !w.matches(s.Pattern, text) {
		ok = w.fail(s, &kind.Pattern{Got: text, Want: s.Pattern.String()})
	}
	if s.ContentSchema == nil {
		return ok
	}
	data := []byte(text)
	if s.ContentEncoding != nil {
		var err error
		if data, err = s.ContentEncoding.Decode(text); err != nil {
			return false // own has already reported the error
		}
	}
	value, err := s.ContentMediaType.UnmarshalJSON(data)
	if err != nil {
		return w.fail(s, &kind.ContentMediaType{Got: data, Want: s.ContentMediaType.Name, Err: err})
	}
	if fits, found := w.apart(s.ContentSchema, value); !fits {
		return w.fail(s, &kind.ContentSchema{}, found...)
	}
	return ok
}

// matches reports whether the text matches. It ends the walk if one match, or all backtracking matches together, require too much
// work.
func (w *walk) matches(p jsonschema.Regexp, text string) bool {
	of, start := p.(*pattern.Pattern), time.Now()
	fits, err := of.Match(w.ctx, text)
	if of.Backtracks() {
		if w.backtracked += time.Since(start); err == nil && w.backtracked > pattern.MaxBacktracking {
			err = fmt.Errorf("matching all texts takes more than %v: simplify the pattern", pattern.MaxBacktracking)
		}
	}
	if err != nil && w.stop == nil {
		if w.stop = err; w.ctx.Err() == nil {
			w.stop = &ValidationError{[]Problem{{Message: err.Error()}}}
		}
	}
	return fits
}
