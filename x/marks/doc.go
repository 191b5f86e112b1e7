// Package marks restricts the use of text depending on its origin. Text from strangers, such as a web page or an email, has a
// mark, and a step that reads marked text may have only the effects that the mark allows.
//
//	policy := marks.Policy{"web": {
//		From: []string{effect.Net},         // what steps and tools with this effect return
//		May:  []string{effect.FSRead},      // the effects of whatever reads it
//		Lift: []string{"ask", "no-links"},  // people, and a check
//	}}
//	result, err := stone.Run(ctx, pipeline, stone.Config{Policy: policy})
//
// # How marks travel
//
// A step reads only the types that it declares, so marks can be derived from the pipeline alone: a step's output has the marks of
// its inputs and of its own effects. No marks are recorded, and a resumed, forked or cached run has the same marks. If a node
// type with a mark reaches an effect that the mark does not allow, stone.Validate rejects the pipeline and shows the path of the
// text.
//
// Some marks are known only during the run:
//
//   - Marks limit the effects granted to a call: capabilities that need other effects are not tried.
//   - An agent's conversation has the marks of the agent's inputs and of every tool that the agent has called. A call of a tool
//     that needs effects which these marks do not allow is refused, and the model is told why. A pipeline used as a tool is
//     checked with the marks of the conversation. A tool that declares no effects is not called with marked text, and its results
//     have all marks.
//   - A tool that the model's provider runs acts before the agent knows of it. Validate rejects such a tool unless all marks that
//     the conversation can have allow the effect net.
//   - A plan is checked with the marks of its inputs, and the model that wrote the plan is told which of the plan's nodes the
//     text must not reach. If the planner has read marked text, all nodes of the plan have the marks of this text.
//   - A child run in another process has the same grant as the leaf that starts it.
//
// # What lifts a mark
//
//   - A person, if Lift contains "ask". Answers of people have no marks. A step that reads the answer, or is in a branch of a
//     Match on the answer, may use the text from which the question was made. An agent asks a person before a call that would
//     otherwise be refused.
//   - A step or an Ask whose name is in Lift. A guard, such as call.Admit, lifts the marks of its input.
//   - A check whose name is in Lift, for the answer of a call that must pass the check.
//   - A closed set, if Lift contains "closed": a type, or the arguments of a tool, whose value must be one of those that its
//     schema lists. A stranger can still influence which of these values is chosen.
//
// # What it does not see
//
// Go code is trusted: steps are assumed to have only the effects that they declare, middlewares are assumed not to pass text on,
// and programs may act on the answers that they request. The choice of a branch by a Match has no mark. Sending text to a model's
// own server does not count as an effect. If one run stores text and another reads it, the text has the mark of the effect that
// reads it.
package marks

import (
	"github.com/stonelayer/stone/effect"
)

// Entries of Lift for people and for closed sets.
const (
	byPerson = effect.Ask
	byList   = "closed"
)
