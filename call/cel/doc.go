// Package cel lets expressions take part in calls, written in the Common Expression
// Language: as checks that judge an answer, and as a capability that computes one.
//
//	check, err := cel.Check("out.total == call.input.a + call.input.b")
//
// A check sees call, a map with intent, input, context and constraints, and out. The
// capability evaluates an expression of its configuration over call, or the one in
// its input over the variables there. The value is the out of the answer, so a map
// literal fills any schema: a res/text, the score and reasons of a judge, your own.
// A configuration is rejected if the types of the expression do not fit the schemas of
// the capability and its intents. What expressions may do and cost is bounded, so that a
// model may write them.
//
// Importing the package makes the solver cel, and the expressions of checks and plans
// known to configurations.
package cel
