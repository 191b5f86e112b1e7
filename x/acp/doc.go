// Package acp serves published pipelines to an editor that speaks the Agent Client Protocol, over the standard input and output
// of a program that the editor starts. The command stone acp serves it.
//
// # Sessions
//
// Each turn of a session is a run, and a label of the run names the session. Sessions are therefore durable: another process that
// uses the same journal can load them. A prompt starts a run of the pipeline that is selected as the session's mode. The prompt
// becomes the input of the run, or a string in the input. If the pipeline reads the result of the previous turn, as an agent with
// agent.ConversationOf does, the run receives this result. A reference to a file is passed on as its address, and an embedded
// file as its text. Pictures, sounds and other files are accepted by an agent with agent.MediaOf and refused by other pipelines.
//
// Several editors that use the same journal may share a session. The id of a run contains the number of its turn, so a prompt
// waits until another editor's turn has ended and then starts the next turn.
//
// # Turns
//
// Text and reasoning are streamed as models write them. Tool calls, and the other leaves of a pipeline, are shown with their
// arguments and results. A question with choices becomes a permission request, and the choices always and never become standing
// permissions of the protocol. If the question is answered elsewhere, the request is withdrawn. A question without choices is
// sent as the agent's reply, and the next prompt answers it.
//
// Canceling a turn cancels its run. Closing the editor does not cancel the run: it continues in this or a later process, and the
// next prompt of the session waits for it to end.
//
// The history of a loaded session contains the conversation of the last turn with pictures, files and tool calls. If there is no
// conversation, it contains the results of all turns with the first 500 bytes of their prompts. Stone does not use the editor's
// files, terminals and MCP servers: a pipeline has the effects that the serving program grants.
package acp
