package call

import (
	"context"
	"encoding/json"

	"github.com/stonelayer/stone/schema"
)

// A Language compiles the expressions of guards, checks and scorers. The error of a method locates the
// mistake in the text. Methods can be called concurrently. Package cel has one.
type Language interface {
	// Guard compiles an expression over variables that yields true or false.
	Guard(text string, variables []string) (Expression, error)
	// Formula compiles an expression over variables that yields any value.
	Formula(text string, variables []string) (Expression, error)
	// Check compiles a check over the variables call and out.
	Check(text string) (Check, CheckFacts, error)
}

// An Expression is compiled. Its methods can be called concurrently.
type Expression interface {
	// Variables returns the names of the variables that the expression reads, sorted.
	Variables() []string
	// Fits compares the expression with the schemas of its variables: schemas by path, as "output" or "call.input". A
	// nil schema is ignored. The error locates the first use that no value of a schema allows.
	Fits(schemas map[string]*schema.Schema) error
	// Eval returns the value as canonical JSON. Variables that are absent are errors where they are read.
	Eval(ctx context.Context, variables map[string]json.RawMessage) (json.RawMessage, error)
}
