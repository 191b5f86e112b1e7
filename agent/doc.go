// Package agent makes ashlars in which a language model works in turns: the model answers or calls tools, and receives their
// results in the next turn, until a decide function accepts its draft as the result. In the pipeline, the agent is a leaf like
// any other.
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
// The conversation belongs to the agent: a list of messages that starts with the text of User. Every turn puts the conversation
// into a [Context], passes the Context through the middlewares to the model and back, and calls the decide function. The decide
// function chooses to take another turn, to accept the draft, or to fail. An agent fails with a kind of package kind or with one
// of these kinds:
//
//   - max-turns: the agent was not done after its last turn
//   - agent-empty-response: an answer has neither text nor a tool call
//   - output-degenerate: the model repeated itself in every attempt
//   - output-truncated: the token limit cut off an answer twice
//   - llm-refused: the model refused to answer
//   - llm-parse-failed: two answers in a row did not fit the schema
//   - llm-error: the model could not be reached, or its answer is incomplete
//   - context-overflow: the conversation is longer than the model's window
//   - healing-exhausted: the adversary rejected the draft after MaxHealing rounds
//   - input/rejected: Config.Admit rejected the input, and the model was not called
//   - halted: a tool, a middleware or a decide function returned Halt
//
// The cause of a failure is the underlying error from package llm or schema, if there is one.
//
// A request never ends with the model's own words: if the last turn contains only text, the agent first adds a user message
// "Continue.".
//
// # Middleware
//
// A [Middleware] wraps a turn; the first in the list is the outermost. Tools are middlewares too: on the way in, a tool is
// offered to the model. At the center, the agent calls the model, runs the model's tool calls and appends their results to the
// conversation. On the way out, every middleware sees both the answer and the results. An agent has no abilities beyond its list
// of middlewares. [Wrap] runs middlewares without an agent, for tests.
//
// The model is told of every failed call and can react. A call fails if the tool does not exist, if its arguments do not fit the
// tool's schema or were cut off, or if the tool returns an error or panics. Arguments with only one possible meaning are
// converted: "3" for a number, null for an optional property. A call that the model writes as text does not run, and the model is
// told once.
//
// # Long results
//
// A result that is longer than Tool.MaxResult is kept as a whole: in the record of the call and, when the agent ends, in a node
// of type "agent/result" beside the agent's node. The model receives the beginning, the size and a handle, which is a short
// digest. With the handle, it can call read_result, which reads a part of the result or searches it. The agent offers this tool
// from then on, even after [Compact], and so does an agent that continues the conversation. A kept result can be at most 8 MiB
// long, and all kept results of an agent may total at most 64 MiB. A call that exceeds these limits fails, and its error contains
// the beginning of the result. Secrets of the run are removed first.
//
// # Media
//
// Config.Media shows pictures, sounds and documents with the first message, and a tool returns them in Result.Media. A
// conversation contains the bytes of the media, at most llm.MaxMedia each; events describe each medium in one line. If the
// model's protocol does not support the media of a result, the model is told so.
//
// # Agents as tools
//
// [AsTool] turns an agent, call or other pipeline into a tool. The pipeline runs below the tool call as part of the run: it is
// recorded, draws on the same account and has the same grant. Its nodes are kept beside the agent's result.
//
// A hand-off does not need a tool: an agent produces the name of the next agent, and stone.Match runs that agent; see the
// example.
//
// # Result
//
// The result is a node of the produced type. If that type is [Text], the model answers freely; otherwise, the type's schema is
// the response format. An answer that does not fit the schema, or that the token limit has cut off, is sent back once with the
// fault. JSON in a code block is accepted. The conversation is kept in the content beside the fields of the type, and can be read
// with [Conversation]. Results are printed and compared without the conversation. The total numbers of turns and tokens are in
// the node's meta.
//
// A tool can provide the answer in place of the model's text, such as the arguments of its call: see [Answer].
//
// Finalize gives the model's draft a separate type and turns the draft into the result. For example, a reviewer answers with a
// verdict, and the result is an approval or a failure.
//
// An Adversary judges drafts before they are accepted: if it rejects a draft, the reason is added to the conversation, followed
// by the Healer's text, and the model tries again.
//
// Servers that run open models often enforce a response format with a grammar that does not allow tool calls. For such servers,
// use two agents: an explorer that has the tools and produces Text, followed by a structurer that has no tools and produces the
// type; see the example ExplorerAndStructurer. If the server can do both, one agent is cheaper and has only one prompt to tune.
//
// # Guardrails
//
// Config.Admit checks the agent's input before a model sees any of it; Adversary checks the agent's drafts. Tool results arrive
// later. To check them, wrap the tool in a middleware, or use a call.Model whose Spec has Admit, which checks every request of
// every turn.
//
// # Chats
//
// Config.Conversation reads the messages so far, which may come from any node: [ConversationOf] reads the messages of an agent's
// result. The next run of a chat starts on the last run's DAG with the next question appended; see the example of ConversationOf.
// A result contains the whole conversation.
//
// # Budget
//
// A turn is a round trip on the account in the context; see package budget. Its tokens are charged to the account, as are the
// summaries of Compact. An agent whose account is exhausted fails with the kind "budget/exhausted".
//
// Every turn repeats the previous conversation. Requests therefore ask the provider to cache their prompt (see
// llm.Request.Cache), and the usage counts cache reads and writes separately.
//
// # Durability
//
// Model turns and tool calls are steps of the run, and recorded steps are not paid for again. Their addresses are the turn and
// the position in the reply, as in "fix/turn-3" and "fix/tool-3-1". The rendered prompts are recorded first, as the value
// "fix/opening". A resumed conversation continues with the recorded prompts, even if they would now render differently, and the
// run reports the difference in a notice. A prompt may therefore contain the time. Secrets of the run are removed from the record
// and therefore never reach the model. Middlewares and decide functions run again when a run is resumed, so they must be
// deterministic.
//
// # Watching
//
// An agent sends the events of package event: AgentStarted and AgentEnded, ModelRequest and ModelResponse for each turn,
// ToolStarted and ToolDone for each call, Progress and ModelRestarted during a long answer. A watcher that wants event.LevelDelta
// receives the answers as they arrive. An answer is retracted if the model starts again, if the answer does not fit the schema,
// or if the adversary rejects it.
//
// # Decisions and tools
//
// After each turn, Config.Decide chooses an [Action] from the [Recommendation] of each tool: [ContinueOnToolUse], the default,
// takes another turn after a tool call, and [ToolDirected] only if a tool recommends [Loop]. [Compact], with a [CompactConfig],
// shortens a conversation that outgrows the model's window. [AsTool] turns a pipeline into a tool; [Made] reads what such tools
// have made. Within a tool, [CallIn] returns the call that the tool is running.
//
// [Finalize] returns a [Finalizer] for Config.Finalize. [ConfigOf] returns the configuration of an agent. [Rebuild] returns the
// same agent with other middlewares; package stonetest uses it for stubs.
package agent
