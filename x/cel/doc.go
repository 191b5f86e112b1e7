// Package cel evaluates expressions in the Common Expression Language, either as checks that accept or reject the answers of
// calls, or as a capability that computes answers.
//
//	check, err := cel.Check("out.total == call.input.a + call.input.b")
//
// A check can use the variables out and call. Call is a map with intent, input, context and constraints. The capability evaluates
// the configured expression over call, or the expression in its input over the variables given there. The value is the out of the
// answer, so a map literal can match any schema: res/text, the score and reasons of a judge, or a schema of your own. A
// configuration is rejected if the types of the expression do not fit the schemas of the capability and its intents. The
// operations and cost of expressions are limited, so that models may write them.
//
// Importing the package makes the solver cel available to configurations, as well as expressions in checks and plans.
package cel
