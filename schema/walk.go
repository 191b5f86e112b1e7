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

// The jsonschema library compiles schemas and checks the keywords that concern only the value itself. The walk below replaces the
// library's own walk from schema to schema, which takes time and memory exponential in the depth of the value for some schemas,
// even for one of 75 bytes. This walk applies a referenced schema to each value only once and remembers the verdict.
const (
	// stepLimit is the maximum number of times that one validation applies a schema to a value.
	stepLimit = 10_000_000
	// depthLimit is the maximum depth of nested schemas and values.
	depthLimit = 40_000
	// errorLimit is the maximum number of errors that a walk keeps. Errors deep inside the document count more than once.
	errorLimit = 1000
)

// A walk applies a schema to a value. The first walk determines only the verdict. If the value does not fit, a second walk,
// guided by the first, collects the errors.
type walk struct {
	ctx   context.Context
	graph *graph
	known map[visit]*verdict // verdicts of referenced schemas on arrays and objects
	here  map[visit]*verdict // verdicts on the current value, if it is neither an array nor an object
	at    []string           // the location of the current value
	scope *scope

	explain bool
	errors  []*jsonschema.ValidationError // the errors of the current schema
	kept    int                           // the number of errors kept so far

	steps, depth int
	backtracked  time.Duration // the total time of all backtracking matches
	stop         error         // the cause of ctx, or the exceeded limit, if the walk ended early
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
	seen      *seen // the evaluated parts of the value; nil if no keyword has needed them
}

// A scope is the list of resources that a walk has entered, outermost first. Dynamic references depend on it. Equal scopes have
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

// validate returns a ValidationError if the document does not fit the schema. If ctx is done or a limit is exceeded, the second
// result is the cause of ctx or a *ValidationError about the limit. Both results are nil if the document fits.
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

// quietly returns the result of do, which it calls without collecting errors.
func (w *walk) quietly(do func() bool) bool {
	explain := w.explain
	w.explain = false
	ok := do()
	w.explain = explain
	return ok
}

// causes calls do and returns the errors that do has recorded.
func (w *walk) causes(do func()) []*jsonschema.ValidationError {
	outer := w.errors
	w.errors = nil
	do()
	found := w.errors
	w.errors = outer
	return found
}

// child applies the schema s to v, the element or property of the current value named by token, and reports whether v fits.
func (w *walk) child(s *jsonschema.Schema, v any, token string) bool {
	here := w.here
	w.here = nil
	w.at = append(w.at, token)
	ok := w.on(s, v, nil)
	w.at = w.at[:len(w.at)-1]
	w.here = here
	return ok
}

// apart applies a schema to a value that is not part of the document. It reports whether the value fits and returns the errors.
func (w *walk) apart(s *jsonschema.Schema, v any) (bool, []*jsonschema.ValidationError) {
	at, here := w.at, w.here
	w.at, w.here = nil, nil
	var ok bool
	found := w.causes(func() { ok = w.on(s, v, nil) })
	w.at, w.here = at, here
	return ok, found
}

// on applies the schema s to the current value v and reports whether v fits. If it fits and into is not nil, on adds the
// evaluated parts of v to into.
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

// once is like on for a referenced schema: it returns the known verdict if s has already been applied to v.
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

// apply applies the keywords of a schema to v and reports whether v satisfies all of them. If the walk collects no errors, apply
// stops at the first keyword that v does not satisfy.
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

// own checks the keywords that concern only the value itself. It sets ok if v satisfies them, and enough if v does not and no
// other keyword need be checked, because the walk collects no errors or the value has the wrong type, format or constant.
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

// refs applies the schemas that s refers to by $ref, $recursiveRef and $dynamicRef, and reports whether v fits all of them.
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

// refer applies the schema to, the target of the reference in s, and reports whether v fits. It records the errors as causes of
// one error about the reference.
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

// identity returns the address of a non-empty array or of an object, or nil for any other value.
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

// matches reports whether the text matches. It ends the walk if this match or the total of all backtracking matches takes too
// long.
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
