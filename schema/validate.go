package schema

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/stonelayer/stone/internal/pattern"
)

// base is the address that every schema has while it is compiled. Nothing can be loaded from it.
const base = "stone:///schema"

// refusal is a loader that refuses to load anything, because a schema must be complete.
type refusal struct{}

func (refusal) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema: the reference %q refers outside the schema, and no other document is loaded; copy its target into $defs",
		strings.TrimPrefix(url, "stone:///"))
}

// compileLibrary compiles a schema with the library, and returns the library's errors unchanged.
func compileLibrary(document any) (compiled *graph, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be compiled: %v", r)
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(refusal{})
	c.UseRegexpEngine(func(text string) (jsonschema.Regexp, error) { return pattern.CompileECMA(text) })
	c.AssertFormat()
	c.AssertContent()
	if err := c.AddResource(base, document); err != nil {
		return nil, err
	}
	root, err := c.Compile(base)
	if err != nil {
		return nil, err
	}
	return newGraph(root, document, func(fragment string) (*jsonschema.Schema, error) { return c.Compile(base + "#" + fragment) }), nil
}

// compileError converts an error of the library to an error that says, on one line, what is invalid first in the schema and where.
func compileError(err error, document any) error {
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return load.Err
	}
	var invalid *jsonschema.SchemaValidationError
	var problems *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &problems) {
		found := report(problems, document, nil)
		if n := len(found) - 1; n > 0 {
			return fmt.Errorf("schema: not a JSON Schema: %s (and %d more)", found[0], n)
		}
		return fmt.Errorf("schema: not a JSON Schema: %s", found[0])
	}
	var pointer *jsonschema.JSONPointerNotFoundError
	if errors.As(err, &pointer) {
		return fmt.Errorf("schema: unresolved reference %q", strings.TrimPrefix(pointer.URL, base))
	}
	var anchor *jsonschema.AnchorNotFoundError
	if errors.As(err, &anchor) {
		return fmt.Errorf("schema: unresolved reference %q", strings.TrimPrefix(anchor.Reference, base))
	}
	return fmt.Errorf("schema: %s", strings.ReplaceAll(err.Error(), base, ""))
}

// Validate checks JSON text against the schema. It returns nil if the text matches. If it does not match, is not JSON, or requires
// more than ten million comparisons, the error is a *ValidationError that lists the problems. Other errors mean that ctx is done or
// the schema cannot be compiled.
func (s *Schema) Validate(ctx context.Context, data []byte) error {
	document, err := decodeDocument(data)
	if err != nil {
		return &ValidationError{[]Problem{{Message: err.Error()}}}
	}
	if s == nil {
		return nil
	}
	compiled, err := s.compiled()
	if err != nil {
		return err
	}
	found, err := compiled.validate(ctx, document)
	if err != nil {
		return err
	}
	if found != nil {
		return &ValidationError{report(found, document, s)}
	}
	return nil
}

// decodeDocument parses JSON text and keeps all digits of numbers. It rejects numbers with huge exponents, because a number such as
// 1e999999 is only eight bytes long but would take a million digits to compare.
func decodeDocument(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, syntaxError(data, err)
	}
	rest := bytes.TrimLeft(data[d.InputOffset():], " \t\r\n")
	if len(rest) > 0 {
		return nil, fmt.Errorf("want one JSON value, got more at %s", position(data, int64(len(data)-len(rest)+1)))
	}
	return v, checkNumbers(v)
}

func checkNumbers(v any) error {
	switch v := v.(type) {
	case json.Number:
		text := string(v)
		if e := strings.IndexAny(text, "eE"); e >= 0 {
			if n, err := strconv.Atoi(text[e+1:]); err != nil || n > 400 || n < -400 {
				return fmt.Errorf("want a number within 64-bit floating point, got %s", shorten(text))
			}
		}
	case []any:
		for _, e := range v {
			if err := checkNumbers(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, e := range v {
			if err := checkNumbers(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// report returns the problems in a tree of errors as a list, sorted by place.
func report(found *jsonschema.ValidationError, document any, s *Schema) []Problem {
	r := reporter{document: document, schema: s}
	r.add(found)
	slices.SortStableFunc(r.found, func(a, b located) int {
		return cmp.Or(slices.CompareFunc(a.at, b.at, func(x, y string) int {
			m, errX := strconv.Atoi(x)
			n, errY := strconv.Atoi(y)
			if errX == nil && errY == nil {
				return cmp.Compare(m, n)
			}
			return cmp.Compare(x, y)
		}), cmp.Compare(a.Message, b.Message))
	})
	var out []Problem
	for _, l := range r.found {
		l.Path = r.path(l.at)
		if len(out) == 0 || out[len(out)-1] != l.Problem {
			out = append(out, l.Problem)
		}
		if len(out) == maxProblems {
			break
		}
	}
	return out
}

type located struct {
	Problem
	at []string
}

type reporter struct {
	document any
	schema   *Schema // used to name the properties that an object may have; may be nil
	found    []located
}

func (r *reporter) say(at []string, format string, args ...any) {
	r.found = append(r.found, located{Problem{Message: cut(fmt.Sprintf(format, args...), messageLength)}, at})
}

func (r *reporter) add(e *jsonschema.ValidationError) {
	at := e.InstanceLocation
	got := func() string { return describe(r.value(at)) }
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		r.alternatives(e)
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			r.say(at, "want exactly one of the alternatives to fit, but %d and %d both do", k.Subschemas[0]+1, k.Subschemas[1]+1)
			return
		}
		r.alternatives(e)
	case *kind.Required:
		for _, name := range k.Missing {
			r.say(at, "property %q is required, but missing", name)
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			r.say(at, "property %q is not allowed%s", name, r.allowed(e.SchemaURL))
		}
	case *kind.PropertyNames:
		inner := reporter{document: k.Property}
		for _, cause := range e.Causes {
			inner.add(cause)
		}
		for _, l := range inner.found {
			r.say(at, "name of property %q: %s", k.Property, l.Message)
		}
	case *kind.ContentSchema, *kind.Contains, *kind.MinContains:
		r.say(at, "%s, got %s", containsWish(k), got())
	default:
		if len(e.Causes) > 0 {
			for _, cause := range e.Causes {
				r.add(cause)
			}
			return
		}
		r.say(at, "%s", r.message(k, got))
	}
}

func containsWish(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinContains:
		return fmt.Sprintf("want at least %d items that fit the schema of contains", k.Want)
	case *kind.ContentSchema:
		return "want content that fits its own schema"
	}
	return "want at least one item that fits the schema of contains"
}

// message returns the requirement of a keyword and a description of the value found.
func (r *reporter) message(k jsonschema.ErrorKind, got func() string) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("want %s, got %s", oneOf(k.Want), got())
	case *kind.Enum:
		return fmt.Sprintf("want %s, got %s", literals(k.Want), got())
	case *kind.Const:
		return fmt.Sprintf("want %s, got %s", literal(k.Want), got())
	case *kind.Format:
		if k.Want == "regex" {
			return fmt.Sprintf("want a regular expression of ECMA-262, got %s", got())
		}
		return fmt.Sprintf("want a string of format %s, got %s", k.Want, got())
	case *kind.Pattern:
		return fmt.Sprintf("want a string that matches %s, got %s", k.Want, got())
	case *kind.MinLength:
		return fmt.Sprintf("want at least %d characters, got %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("want at most %d characters, got %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("want at least %d items, got %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("want at most %d items, got %d", k.Want, k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("want at least %d properties, got %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("want at most %d properties, got %d", k.Want, k.Got)
	case *kind.Minimum:
		return fmt.Sprintf("want at least %s, got %s", decimal(k.Want), got())
	case *kind.Maximum:
		return fmt.Sprintf("want at most %s, got %s", decimal(k.Want), got())
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("want more than %s, got %s", decimal(k.Want), got())
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("want less than %s, got %s", decimal(k.Want), got())
	case *kind.MultipleOf:
		return fmt.Sprintf("want a multiple of %s, got %s", decimal(k.Want), got())
	case *kind.UniqueItems:
		return fmt.Sprintf("want items that differ, but items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.MaxContains:
		return fmt.Sprintf("want at most %d items that fit the schema of contains, got %d", k.Want, len(k.Got))
	case *kind.DependentRequired:
		return fmt.Sprintf("property %q requires %s as well", k.Prop, quotedList(k.Missing))
	case *kind.Dependency:
		return fmt.Sprintf("property %q requires %s as well", k.Prop, quotedList(k.Missing))
	case *kind.ContentEncoding:
		return fmt.Sprintf("want a string in %s, got %s", k.Want, got())
	case *kind.ContentMediaType:
		return fmt.Sprintf("want content of type %s, got %s", k.Want, got())
	case *kind.FalseSchema:
		return "want nothing here, got " + got()
	case *kind.Not:
		return "want anything but what the schema of not describes, got " + got()
	case *kind.AdditionalItems:
		return fmt.Sprintf("want %d fewer items", k.Count)
	case *kind.RefCycle:
		return fmt.Sprintf("the schema refers to itself without end at %s", strings.TrimPrefix(k.URL, base))
	}
	return fmt.Sprintf("does not fit (%T), got %s", k, got())
}

func quotedList(names []string) string {
	values := make([]any, len(names))
	for i, n := range names {
		values[i] = n
	}
	return literals(values)
}

func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(20), "0")
}
