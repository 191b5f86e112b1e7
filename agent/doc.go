// Package agent makes ashlars in which a language model works in turns: it is
// asked, it calls tools, it is asked again with their results, until a decision
// says that its draft is the result. From outside it is a leaf like any other.
//
//	fix := agent.New("fix", Patch, model, agent.Config{
//		Queries:  dag.Types(Issue, dag.Optional(Verdict)),
//		System:   agent.Say("You repair Go packages."),
//		User:     describe, // func(dag.DAG) (string, error)
//		Use:      []agent.Middleware{fs.Read(root), fs.Edit(root)},
//		MaxTurns: 12,
//	})
//
// # Turns
//
// The conversation belongs to the agent: a list of messages, begun by what User
// says about the DAG. Every turn makes a [Context] of it, passes that through the
// middlewares to the model and back, and asks the decide function what next:
// another turn, the draft as it is, or a failure. A turn limit is a failure too.
//
// # Middleware
//
// A [Middleware] wraps a turn as one ring of an onion: the first in the list is
// the outermost. Tools are middlewares: on the way in a tool offers itself to the
// model, next to the model its calls are run and their results appended to the
// conversation, and on the way out every ring sees both. An agent can do what is
// in its list and nothing else.
//
// # Result
//
// The result is a node of the produced type. If that is [Text], the model answers
// freely; otherwise the type's schema is the response format, and a draft that
// does not fit it is sent back once with what is wrong. The conversation is kept
// in the content beside the fields of the type; [Conversation] reads it.
//
// # Durability
//
// The turns of the model and the calls of tools are steps of the run: what the
// run's recorder knows is not paid for again.
package agent
