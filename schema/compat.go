package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Compatible returns the reasons why a consumer with one schema cannot read every value described by the producer's schema. An
// empty result means that no incompatibility is certain. A nil schema is compatible with every other schema.
//
// Compatible returns all problems that are certain from the schemas: a type that the consumer rejects; a property that the consumer
// requires but the producer never writes or may omit; a property that the consumer forbids; and a value in the producer's closed
// list that the consumer rejects. For each alternative of the producer, the consumer must have an alternative that can read it.
// Each schema of a oneOf is assumed to allow values that no other schema of the oneOf allows. Only validation checks limits such as
// maxLength or pattern, and a consumer's enum where the producer has no closed list. The same is true of null, because Go writes a
// nil slice, map or pointer as null and can read null into any type.
//
// Compatible caches its result for each pair of pointers.
func Compatible(producer, consumer *Schema) []Problem {
	if producer == nil || consumer == nil || producer == consumer {
		return nil
	}
	problems, ok := producer.verdicts.get(consumer)
	if !ok {
		c := comparison{producer: producer, consumer: consumer, known: map[string][]finding{}}
		for _, f := range c.read([]any{producer.root}, consumer.root) {
			problems = append(problems, f.Problem)
		}
		problems = producer.verdicts.put(consumer, problems)
	}
	return slices.Clone(problems)
}

// finding is a problem with some or all of the producer's values. It rules out an alternative of the consumer only if it concerns
// all values.
type finding struct {
	Problem
	all      bool // the problem concerns all of the producer's values
	mistyped bool // the reason is the type of the value itself, not of a part
}

// maxSteps is the maximum number of steps in one comparison, because a schema may be hostile. Problems found later are not
// reported.
const maxSteps = 20_000

// comparison walks the producer's and the consumer's tree in parallel.
type comparison struct {
	producer, consumer *Schema
	known              map[string][]finding // findings for each pair of nodes; none for a pair in progress
	steps              int
}

// read compares nodes of the producer with one node of the consumer. All nodes of the producer apply to the same value.
func (c *comparison) read(produced []any, consumed any) []finding {
	var b strings.Builder
	for _, node := range append(slices.Clone(produced), consumed) {
		if o, ok := node.(*object); ok {
			fmt.Fprintf(&b, "%p ", o)
		} else {
			fmt.Fprintf(&b, "%v ", node)
		}
	}
	key := b.String()
	if found, ok := c.known[key]; ok {
		return found
	}
	c.known[key] = nil
	found := c.readView(c.producer.view(produced...), consumed)
	c.known[key] = found
	return found
}

// unit is one kind of value that the producer writes: a type, or a single value of a closed list.
type unit struct {
	typ    string
	value  any
	closed bool
}

func (u unit) String() string {
	if u.closed {
		return literal(u.value)
	}
	return u.typ
}

func (c *comparison) readView(p view, consumed any) []finding {
	if c.steps++; c.steps > maxSteps || c.empty(p, 0) {
		return nil
	}
	var results [][]finding
	if rest, list := p.alternatives(); list != nil {
		for _, alternative := range list {
			branch := rest.and(c.producer.view(alternative))
			if types, _ := branch.types(); len(list) > 1 && len(types) == 1 && types[0] == "null" {
				continue
			}
			results = append(results, c.readView(branch, consumed))
		}
		return merge(results)
	}
	for _, u := range units(p) {
		found := c.readUnit(p, u, consumed)
		if p.vague {
			found = slices.DeleteFunc(slices.Clone(found), func(f finding) bool { return !f.all })
			if len(found) == 0 {
				return nil // the vague keyword may exclude other kinds of values
			}
		}
		results = append(results, found)
	}
	return merge(results)
}

// units splits the producer's values into kinds. It omits null unless null is the only kind.
func units(p view) []unit {
	var out []unit
	if values, closed := p.values(); closed {
		for _, v := range values {
			out = append(out, unit{typeOf(v), v, true})
		}
	} else if types, known := p.types(); known {
		for _, t := range types {
			out = append(out, unit{typ: t})
		}
	}
	if some := slices.DeleteFunc(slices.Clone(out), func(u unit) bool { return u.typ == "null" }); len(some) > 0 {
		return some
	}
	return out
}

// merge joins the findings on parts of the producer's values. A finding concerns all values only if every part has a finding that
// concerns all of its values.
func merge(results [][]finding) []finding {
	all := true
	for _, found := range results {
		all = all && slices.ContainsFunc(found, func(f finding) bool { return f.all })
	}
	var out []finding
	for _, found := range results {
		for _, f := range found {
			f.all = f.all && all
			f.mistyped = f.mistyped && all
			if !slices.ContainsFunc(out, func(g finding) bool { return g.Problem == f.Problem }) {
				out = append(out, f)
			}
		}
	}
	return out
}

func (c *comparison) readUnit(p view, u unit, consumed any) []finding {
	if c.steps++; c.steps > maxSteps {
		return nil
	}
	wanted := c.consumer.view(consumed)
	if wanted.never {
		return []finding{{Problem{"", fmt.Sprintf("want nothing, the producer writes %s", u)}, true, true}}
	}
	var out []finding
	for _, part := range wanted.parts {
		out = append(out, c.readPart(p, u, part)...)
	}
	return out
}

// readPart compares one kind of the producer's values with the keywords in one part of the consumer's schema.
func (c *comparison) readPart(p view, u unit, part *object) []finding {
	if types := part.strings("type"); part.has("type") && !accepts(types, u.typ) {
		none := u.closed || u.typ != "number" || !slices.Contains(types, "integer")
		return []finding{{Problem{"", fmt.Sprintf("want %s, the producer writes %s", oneOf(types), u)}, none, none}}
	}
	if values, ok := listed(part); ok && u.closed && !containsValue(values, u.value) {
		return []finding{{Problem{"", fmt.Sprintf("want %s, the producer may write %s", literals(values), u)}, true, false}}
	}
	var out []finding
	if !p.vague && !u.closed && u.typ == "object" {
		out = append(out, c.readObject(p, part)...)
	}
	if !p.vague && !u.closed && u.typ == "array" {
		out = append(out, c.readArray(p, part)...)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := part.list(keyword); len(list) > 0 {
			out = append(out, c.readSome(p, u, list)...)
		}
	}
	return out
}

// readSome compares the producer's values with the consumer's alternatives. If their type fits one alternative, the findings on
// that alternative count. If the type fits several alternatives, their findings count only if none of them can read any value.
func (c *comparison) readSome(p view, u unit, list []any) []finding {
	var typed [][]finding
	var reasons []string
	for i, alternative := range list {
		found := c.readUnit(p, u, alternative)
		if len(found) == 0 {
			return nil
		}
		reasons = append(reasons, fmt.Sprintf("(%d) %s", i+1, found[0].Problem))
		if !slices.ContainsFunc(found, func(f finding) bool { return f.mistyped }) {
			typed = append(typed, found)
		}
	}
	if len(typed) == 1 {
		return typed[0]
	}
	for _, found := range typed {
		if !slices.ContainsFunc(found, func(f finding) bool { return f.all }) {
			return nil
		}
	}
	message := fmt.Sprintf("the producer writes %s, which fits none of %d alternatives: %s",
		u, len(list), strings.Join(reasons, "; "))
	return []finding{{Problem{"", message}, true, len(typed) == 0}}
}
