// Package agent makes ashlars in which a language model works in turns: it is
// asked, it calls tools, it is asked again with their results, until a decision
// says that its draft is the result. From outside it is a leaf like any other.
//
//	fix := agent.New("fix", Patch, model, agent.Config{
//		System:   agent.Say("You repair Go packages."),
//		User:     agent.Prompt(Issue, func(i IssueDoc) string { return i.Text }),
//		Use:      []agent.Middleware{fs.Read(root), fs.Edit(root)},
//		MaxTurns: 12,
//	})
//
// # Turns
//
// The conversation belongs to the agent: a list of messages, begun by what User
// says about the DAG. Every turn makes a [Context] of it, passes that through the
// middlewares to the model and back, and asks the decide function what next:
// another turn, the draft as it is, or a failure. A turn limit is a failure too,
// as is an empty answer, a refusal, or a stream that ends before its answer is
// whole; the kinds are the constants of this package.
//
// The model never finds its own words at the end of what it is asked: when a
// decision takes another turn after text alone, the user says "Continue." first.
//
// # Middleware
//
// A [Middleware] wraps a turn as one ring of an onion: the first in the list is
// the outermost. Tools are middlewares: on the way in a tool offers itself to the
// model, next to the model its calls are run and their results appended to the
// conversation, and on the way out every ring sees both. An agent can do what is
// in its list and nothing else.
//
// What goes wrong with a call is told to the model, which can do something about
// it: a tool that does not exist, arguments that do not fit the tool's schema or
// were cut off, an error, a panic.
//
// # Result
//
// The result is a node of the produced type. If that is [Text], the model answers
// freely; otherwise the type's schema is the response format. An answer that does
// not fit it, or that the token limit cut off, is sent back once with what is
// wrong; JSON in the fence of a code block is taken out of it. The conversation is
// kept in the content beside the fields of the type, and [Conversation] reads it; it
// is not printed with results, and answers are compared without it;
// the sums of turns and tokens are in the node's meta.
//
// An Adversary judges drafts before they are accepted: the reason of its failure
// enters the conversation, what the Healer finds follows, and the model tries
// again.
//
// Servers that run open models often enforce a response format by a grammar in
// which no tool can be called. Make two agents for them, an explorer with the tools
// that produces Text, and behind it a structurer without tools that produces the
// type; see the example of that name. Where one server does both, one agent is
// cheaper and has one prompt to tune.
//
// # Budget
//
// A turn is a round trip on the account in the context, see package budget, and its
// tokens are charged to it, as are summaries of a Compact. An agent whose account
// is spent fails with the kind "budget/exhausted".
//
// # Durability
//
// The turns of the model and the calls of tools are steps of the run: what the
// run's recorder knows is not paid for again. Their addresses are the turn and the
// position in the reply, as in "fix/turn-3" and "fix/tool-3-1". Prompts,
// middlewares and decisions are run anew when a run is resumed, so they must
// follow from what they are given.
//
// # Watching
//
// An agent sends the events of package event: AgentStarted and AgentEnded,
// ModelRequest and ModelResponse for each turn, ToolStarted and ToolDone for each
// call, Progress and ModelRestarted while an answer takes its time. A watcher that
// wants event.LevelDelta gets the answers as they arrive. An answer that the model
// starts again, that does not fit the schema or that the adversary rejects is
// retracted.
package agent
