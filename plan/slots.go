package plan

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/kind"
)

// An access describes how a node reads a slot: which queries it needs, and which nodes these find.
type access struct {
	typ    dag.AnyType
	failed dag.AnyType // type of the allowed failure; nil if the slot cannot have one
	needed bool        // the validator must find a producer
	loose  bool        // the slot is read as a keyword, which is data if the slot is undefined
	absent bool        // the slot is undefined, even if lanes contain nodes of its type
}

// queries returns the queries that the access needs. A Since query shows whether a failure is nearer than a value.
func (a *access) queries() []dag.Querier {
	if a.absent {
		if a.failed == nil {
			return nil
		}
		return []dag.Querier{a.failed.Query().Optional()}
	}
	q := a.typ.Query()
	if !a.needed {
		q = q.Optional()
	}
	if a.failed == nil {
		return []dag.Querier{q}
	}
	return []dag.Querier{q, a.failed.Query().Optional(), a.failed.Query().Since(a.typ).Optional()}
}

// find returns the node of the slot or, if that is nearer, the node of its failure. Both are nil if neither exists.
func (a *access) find(d dag.DAG) (n, failure *dag.Node) {
	if !a.absent {
		n = nearest(d, a.typ)
	}
	if a.failed == nil {
		return n, nil
	}
	if n == nil {
		return nil, nearest(d, a.failed)
	}
	if since, err := d.Since(a.failed.Name(), a.typ.Name()); err == nil && len(since) > 0 {
		return nil, since[len(since)-1]
	}
	return n, nil
}

func nearest(d dag.DAG, t dag.AnyType) *dag.Node {
	n, err := d.Nearest(t.Name())
	if err != nil { // there is no such node
		return nil
	}
	return n
}

// reads maps the names of slots to the accesses of one node.
type reads map[string]*access

func (r reads) queries() []dag.Querier {
	var out []dag.Querier
	for _, name := range slices.Sorted(maps.Keys(r)) {
		out = append(out, r[name].queries()...)
	}
	return out
}

// A view reads slots in a DAG.
type view struct {
	reads
	dag      dag.DAG
	formulas map[string]call.Expression
}

func (v view) slot(ref *slotRef) (json.RawMessage, error) {
	n, failure := v.reads[ref.name].find(v.dag)
	var value json.RawMessage
	switch {
	case ref.record:
		record, err := recordOf(n, failure)
		if err != nil {
			return nil, err
		}
		value = record
	case n != nil:
		value = json.RawMessage(n.JSON())
	}
	switch {
	case value == nil && failure != nil:
		return nil, stone.Fail(kind.MissingInput, "%s: the call failed, as its plan allows: guard the node with {:present? :%s}, or read {:slot/record :%[2]s}", ref, ref.name)
	case value == nil:
		return nil, stone.Fail(kind.MissingInput, "%s: unknown slot", ref)
	}
	out, ok := walk(value, ref.path)
	if !ok {
		return nil, stone.Fail(kind.MissingInput, "%s: the slot has no value at this path", ref)
	}
	return out, nil
}

func (v view) word(name string) (json.RawMessage, bool, error) {
	a := v.reads[name]
	if a == nil { // a reserved name
		return nil, false, nil
	}
	if !a.loose {
		value, err := v.slot(&slotRef{name: name})
		return value, true, err
	}
	n, _ := a.find(v.dag)
	if n == nil {
		return nil, false, nil
	}
	return json.RawMessage(n.JSON()), true, nil
}

// record is the part of a call's record that a plan can read. It contains no times.
type record struct {
	Cap      string    `json:"cap/id,omitempty"`
	Attempts int       `json:"attempts"`
	Failure  string    `json:"failure/type,omitempty"`
	Error    string    `json:"error,omitempty"`
	Out      call.JSON `json:"out,omitempty"`
}

// recordOf returns the record of a call as JSON, given the call's node or its failure. It returns nil if there is no record.
func recordOf(n, failure *dag.Node) (json.RawMessage, error) {
	var of *call.Record
	switch {
	case n != nil:
		of = call.RecordOf(n)
	case failure != nil:
		of = new(call.Record)
		if err := json.Unmarshal([]byte(failure.JSON()), of); err != nil {
			return nil, stone.Fail(kind.BadContent, "%s is not a record of a call: %w", failure, err)
		}
	}
	if of == nil {
		return nil, nil
	}
	out := record{of.Cap, of.Attempts, of.Failure, of.Error, of.Out}
	if n != nil {
		out.Out = json.RawMessage(n.JSON())
	}
	return canon.Append(nil, out)
}

// A test is a guard compiled for one node.
type test struct {
	*guard
	program call.Expression
	reads   reads
}

// holds reports whether the guard holds.
func (t *test) holds(d dag.DAG) (bool, error) {
	v := view{t.reads, d, nil}
	switch t.form {
	case always:
		return true, nil
	case present, failed:
		n, failure := v.reads[t.name].find(d)
		return t.form == present && n != nil || t.form == failed && failure != nil, nil
	case expression:
		values, err := v.variables(t.program)
		if err != nil {
			return false, err
		}
		ok, err := isTrue(d.Context(), t.program, values)
		if err != nil {
			return false, stone.Fail(badExpression, "%.200q: %w", t.text, err)
		}
		return ok, nil
	}
	return false, nil
}

// variables returns the values of the slots that an expression reads, by name.
func (v view) variables(program call.Expression) (map[string]json.RawMessage, error) {
	values := make(map[string]json.RawMessage)
	for _, name := range program.Variables() {
		value, err := v.slot(&slotRef{name: name})
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, nil
}

func (v view) formula(text string) (json.RawMessage, error) {
	values, err := v.variables(v.formulas[text])
	if err != nil {
		return nil, err
	}
	value, err := v.formulas[text].Eval(v.dag.Context(), values)
	if err != nil {
		return nil, stone.Fail(badExpression, "%.200q: %w", text, err)
	}
	return value, nil
}

// isTrue evaluates the expression of a guard, and reports whether the result is true.
func isTrue(ctx context.Context, program call.Expression, values map[string]json.RawMessage) (bool, error) {
	value, err := program.Eval(ctx, values)
	return string(value) == "true", err
}

// reserved reports whether name is reserved, so that plans must not use it.
func reserved(name string) bool {
	return dag.Reserved(name) || strings.HasPrefix(name, "auth/") || strings.HasPrefix(name, "roles/")
}
