package expr

import (
	"errors"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common/containers"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
)

const (
	maxChars     = 8192
	maxNodes     = 2000
	maxDepth     = 50
	maxMacros    = 12
	maxType      = 24 // the maximum nesting of lists and maps in a type
	maxCost      = 1_000_000
	maxMemory    = 1 << 20   // in elements, or in tens of bytes of text
	maxNesting   = 1000      // the nesting of a value
	maxText      = 8 << 20   // in bytes, for one value
	maxRegex     = 1000      // in instructions
	maxPairs     = 4_000_000 // comparisons in one call
	maxRange     = 10_000
	maxPrecision = 100
)

// limits apply to every evaluation.
var limits = []cel.ProgramOption{
	cel.CostLimit(maxCost),
	cel.MemoryLimit(maxMemory),
	cel.MemoryTracking(
		types.MemoryTrackerSizeCalculator(types.NewSizeCalculator(
			types.SizeCalculatorMaxDepth(maxNesting), types.SizeCalculatorMaxTraversal(maxMemory))),
		// With a shorter interval, a list built by a macro would be measured each time it grows.
		types.MemoryTrackerSampleInterval(500),
	),
	cel.InterruptCheckFrequency(100),
	cel.EvalOptions(cel.OptOptimize),
}

// A world holds everything that all expressions share, except variables. Creating a world takes a hundred times as long as
// compiling an expression.
type world struct {
	env     *cel.Env
	checker *checker.Env
}

var theWorld = sync.OnceValues(newWorld)

func newWorld() (*world, error) {
	env, err := cel.NewEnv(
		cel.CrossTypeNumericComparisons(true),
		ext.Strings(ext.StringsMaxPrecision(maxPrecision)),
		ext.Lists(ext.ListsMaxRangeSize(maxRange)),
		ext.Math(), ext.Sets(),
		cel.ParserExpressionSizeLimit(maxChars),
		cel.ParserRecursionLimit(maxDepth),
		cel.ExpressionNodeLimit(maxNodes),
		cel.RegexProgramSizeLimit(maxRegex),
	)
	if err != nil {
		return nil, err
	}
	var guarded []cel.EnvOption
	for name, allow := range guards {
		option, err := guard(env, name, allow)
		if err != nil {
			return nil, err
		}
		guarded = append(guarded, option)
	}
	if env, err = env.Extend(guarded...); err != nil {
		return nil, err
	}
	check, err := checker.NewEnv(containers.DefaultContainer, env.CELTypeProvider(), checker.CrossTypeNumericComparisons(true))
	if err != nil {
		return nil, err
	}
	for _, f := range env.Functions() {
		if f.IsDeclarationDisabled() {
			continue
		}
		if err := check.AddFunctions(f); err != nil {
			return nil, err
		}
	}
	return &world{env, check}, nil
}

// isType reports whether a name denotes a type, as in type(x) == int.
func (w *world) isType(name string) bool {
	_, found := w.env.CELTypeProvider().FindIdent(name)
	return found
}

var (
	errTooLarge = errors.New("the result would be too large")
	errTooLong  = errors.New("the arguments are too large")
)

// guards reject calls that could be disproportionately costly, because the cost of a function is counted only after the call.
var guards = map[string]func(args []ref.Val) error{
	"replace":         replaceable,
	"join":            joinable,
	"indexOf":         pairs,
	"lastIndexOf":     pairs,
	"distinct":        pairs,
	"hasOnly":         pairs,
	"hasAny":          pairs,
	"hasAll":          pairs,
	"hasExactly":      pairs,
	"sets.contains":   pairs,
	"sets.equivalent": pairs,
	"sets.intersects": pairs,
}

// guard wraps a function of the environment so that allow is called before each call.
func guard(env *cel.Env, name string, allow func([]ref.Val) error) (cel.EnvOption, error) {
	f, ok := env.Functions()[name]
	if !ok {
		return nil, errors.New("expr: no function " + name)
	}
	bound, err := f.Bindings()
	if err != nil {
		return nil, err
	}
	ops := map[string]*functions.Overload{}
	for _, b := range bound {
		ops[b.Operator] = b
	}
	var opts []cel.FunctionOpt
	for _, o := range f.OverloadDecls() {
		inner, ok := ops[o.ID()]
		if !ok {
			return nil, errors.New("expr: no overload " + o.ID())
		}
		overload := cel.Overload
		if o.IsMemberFunction() {
			overload = cel.MemberOverload
		}
		opts = append(opts, overload(o.ID(), o.ArgTypes(), o.ResultType(), binding(len(o.ArgTypes()), func(args ...ref.Val) ref.Val {
			if err := allow(args); err != nil {
				return types.WrapErr(err)
			}
			switch {
			case len(args) == 1 && inner.Unary != nil:
				return inner.Unary(args[0])
			case len(args) == 2 && inner.Binary != nil:
				return inner.Binary(args[0], args[1])
			default:
				return inner.Function(args...)
			}
		})))
	}
	return cel.Function(name, opts...), nil
}

func binding(args int, op func(args ...ref.Val) ref.Val) cel.OverloadOpt {
	switch args {
	case 1:
		return cel.UnaryBinding(func(a ref.Val) ref.Val { return op(a) })
	case 2:
		return cel.BinaryBinding(func(a, b ref.Val) ref.Val { return op(a, b) })
	default:
		return cel.FunctionBinding(op)
	}
}

func replaceable(args []ref.Val) error {
	text, ok1 := args[0].(types.String)
	old, ok2 := args[1].(types.String)
	with, ok3 := args[2].(types.String)
	if ok1 && ok2 && ok3 && len(text)+strings.Count(string(text), string(old))*len(with) > maxText {
		return errTooLarge
	}
	return nil
}

func joinable(args []ref.Val) error {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return nil
	}
	size := 0
	if len(args) > 1 {
		size = length(args[1]) * length(list)
	}
	for it := list.Iterator(); it.HasNext() == types.True && size <= maxText; {
		size += length(it.Next())
	}
	if size > maxText {
		return errTooLarge
	}
	return nil
}

// pairs rejects calls that would compare too many pairs of elements, either of two arguments or within one argument.
func pairs(args []ref.Val) error {
	other := args[0]
	if len(args) > 1 {
		other = args[1]
	}
	if n, m := length(args[0]), length(other); n > 0 && m > maxPairs/n {
		return errTooLong
	}
	return nil
}

// length returns the length of a value, or 0 if the value has no length.
func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok {
			return int(n)
		}
	}
	return 0
}
