package expr

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/containers"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/types"

	"github.com/stonelayer/stone/internal/suggest"
)

// Result is the required type of an expression's value.
type Result int

// The results.
const (
	Any  Result = iota // any JSON value
	Bool               // true or false
)

// An Error describes a mistake in an expression and its place.
type Error struct {
	Line, Column int // counted from 1, the column in characters; 0 if unknown
	Reason       string
	Cause        error // why the evaluation was stopped
}

// Error returns the message on one line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// A Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	program   cel.Program
	checked   *ast.AST
	variables []string
	result    Result
	locate    func(node int64) common.Location
}

// Compile compiles an expression that may use variables with the given names. Names that are not identifiers of the language,
// such as "a-b" or "in", cannot be used in expressions and are ignored. Any error is an *Error.
func Compile(text string, variables []string, result Result) (p *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, &Error{Reason: fmt.Sprintf("cannot be compiled: %v", r)}
		}
	}()
	world, err := theWorld()
	if err != nil {
		return nil, err
	}
	parsed, issues := world.env.Parse(text)
	if issues.Err() != nil {
		return nil, fault(issues.Errors())
	}
	tree := parsed.NativeRep()
	if n := ast.NodeCount(tree); n > maxNodes {
		return nil, &Error{Reason: fmt.Sprintf("is too large: %d nodes, at most %d", n, maxNodes)}
	}
	locate := tree.SourceInfo().GetStartLocation
	used := map[string]*decls.VariableDecl{}
	free, macros := freeIdents(tree.Expr())
	if macros > maxMacros {
		return nil, &Error{Reason: fmt.Sprintf("is too large: %d macros such as all and map, at most %d", macros, maxMacros)}
	}
	if n := levels(tree.Expr()); n > maxType {
		return nil, &Error{Reason: fmt.Sprintf("is too large: lists and maps in each other %d deep, at most %d", n, maxType)}
	}
	for _, id := range free {
		name := strings.TrimPrefix(id.AsIdent(), ".")
		if slices.Contains(variables, name) {
			used[name] = decls.NewVariable(name, types.DynType)
		} else if !world.isType(name) {
			return nil, at(locate(id.ID()), "unknown name "+name+hint(name, variables))
		}
	}
	checked, err := world.check(tree, parsed.Source(), slices.Collect(maps.Values(used)))
	if err != nil {
		return nil, err
	}
	if t := checked.GetType(checked.Expr().ID()); result == Bool && t.Kind() != types.BoolKind && t.Kind() != types.DynKind {
		return nil, &Error{Line: 1, Column: 1, Reason: "must be true or false, is " + cel.FormatCELType(t)}
	}
	// A running program looks up variables by name, so all programs can share the functions of one environment.
	program, err := world.env.PlanProgram(checked, limits...)
	if err != nil {
		return nil, &Error{Reason: oneLine(err.Error())}
	}
	return &Program{program, checked, slices.Sorted(maps.Keys(used)), result, locate}, nil
}

// Variables returns the names of the variables that the expression reads, sorted.
func (p *Program) Variables() []string { return slices.Clone(p.variables) }

// check infers the types and reports the first mistake.
func (w *world) check(tree *ast.AST, source common.Source, variables []*decls.VariableDecl) (*ast.AST, error) {
	scope, err := checker.NewEnv(containers.DefaultContainer, w.env.CELTypeProvider(),
		checker.ValidatedDeclarations(w.checker), checker.CrossTypeNumericComparisons(true))
	if err != nil {
		return nil, err
	}
	if err := scope.AddIdents(variables...); err != nil {
		return nil, err
	}
	checked, errs := checker.Check(tree, source, scope)
	if faults := errs.GetErrors(); len(faults) > 0 {
		return nil, fault(faults)
	}
	return checked, nil
}

// freeIdents lists the identifiers that are not bound by an enclosing macro, and counts
// the macros.
func freeIdents(e ast.Expr) (free []ast.Expr, macros int) {
	var walk func(e ast.Expr, bound []string)
	walk = func(e ast.Expr, bound []string) {
		switch e.Kind() {
		case ast.IdentKind:
			if !slices.Contains(bound, e.AsIdent()) {
				free = append(free, e)
			}
		case ast.ComprehensionKind:
			macros++
			c := e.AsComprehension()
			walk(c.IterRange(), bound)
			walk(c.AccuInit(), bound)
			after := append(slices.Clip(bound), c.AccuVar())
			inside := append(slices.Clip(after), c.IterVar())
			if c.HasIterVar2() {
				inside = append(inside, c.IterVar2())
			}
			walk(c.LoopCondition(), inside)
			walk(c.LoopStep(), inside)
			walk(c.Result(), after)
		default:
			for _, child := range children(e) {
				walk(child, bound)
			}
		}
	}
	walk(e, nil)
	return free, macros
}

// levels returns an upper bound of the nesting of list and map types in an expression. The result of a macro can contain its
// input, so a short chain of macros can have a deeply nested type, and inferring such types can take minutes.
func levels(e ast.Expr) int {
	deepest := func(parts ...ast.Expr) int {
		n := 0
		for _, part := range parts {
			n = max(n, levels(part))
		}
		return n
	}
	switch e.Kind() {
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return levels(c.IterRange()) + deepest(c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result())
	case ast.ListKind:
		return 1 + deepest(children(e)...)
	case ast.MapKind:
		own := 1
		for _, entry := range e.AsMap().Entries() {
			if entry.AsMapEntry().Key().Kind() != ast.LiteralKind {
				own = 4 // key and value may both have deeply nested types
			}
		}
		return own + deepest(children(e)...)
	default:
		return deepest(children(e)...)
	}
}

// children lists the parts of an expression that is not a comprehension.
func children(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() && !isNamespace(call) {
			return append([]ast.Expr{call.Target()}, call.Args()...)
		}
		return call.Args()
	case ast.MapKind:
		var parts []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			parts = append(parts, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return parts
	case ast.StructKind:
		var parts []ast.Expr
		for _, field := range e.AsStruct().Fields() {
			parts = append(parts, field.AsStructField().Value())
		}
		return parts
	default:
		return nil
	}
}

// isNamespace reports whether an apparent method is a function with a dot in its name, such as math.abs(x).
func isNamespace(call ast.CallExpr) bool {
	if call.Target().Kind() != ast.IdentKind {
		return false
	}
	world, err := theWorld()
	return err == nil && world.env.HasFunction(call.Target().AsIdent()+"."+call.FunctionName())
}

// fault returns an *Error for the first of the issues that the compiler has found.
func fault(errs []*common.Error) *Error {
	reason := strings.ReplaceAll(errs[0].Message, " (in container '')", "")
	if name, ok := strings.CutPrefix(reason, "undeclared reference to "); ok {
		name = strings.Trim(name, "'")
		reason = "unknown function " + name
		if world, err := theWorld(); err == nil {
			reason += hint(name, slices.Collect(maps.Keys(world.env.Functions())))
		}
	}
	if wrong, ok := strings.CutPrefix(reason, "Syntax error: "); ok {
		wrong, _, _ = strings.Cut(wrong, " expecting {") // removes the list of all tokens
		reason = "syntax error: " + strings.NewReplacer("mismatched input '<EOF>'", "the expression is incomplete", "'<EOF>'", "the end of the expression").Replace(wrong)
	}
	return at(errs[0].Location, reason)
}

func at(place common.Location, reason string) *Error {
	err := &Error{Reason: oneLine(reason)}
	if place != nil && place.Line() > 0 {
		err.Line, err.Column = place.Line(), max(1, place.Column()+1)
	}
	return err
}

func hint(name string, known []string) string {
	if near := suggest.Closest(name, slices.Values(known)); near != "" {
		return ", did you mean " + near + "?"
	}
	return ""
}

// oneLine shortens a text for a message.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > 300 {
		s = string(runes[:300]) + " …"
	}
	return s
}
