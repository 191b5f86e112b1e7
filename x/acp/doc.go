// Package acp serves published pipelines to an editor that speaks the Agent Client Protocol, over the standard input and output
// of a program that the editor starts. The command stone acp serves it.
//
// # Sessions
//
// Each run is a turn, and a label names its session. Sessions are therefore durable: another process that uses the same journal
// can load them. A prompt starts a run of the pipeline that is selected as the session's mode. The prompt becomes the run's
// input, or a text in it. A pipeline that reads the result of the previous turn, as an agent with agent.ConversationOf does,
// receives it. A reference to a file is passed on as its address, and an embedded file as its text. Pictures, sounds and other
// files are accepted by an agent with agent.MediaOf and refused by other pipelines.
//
// Several editors may share a session in one journal. The run of a turn is named after the turn's number, so a prompt waits until
// another editor's turn has ended, and continues after it.
//
// # Turns
//
// Text and reasoning are streamed as models write them. Tool calls, and the other leaves of a pipeline, are shown with their
// arguments and results. A question with choices becomes a permission request, and the choices always and never become standing
// permissions of the protocol. If someone else answers the question, the request is withdrawn. Any other question is sent as the
// agent's reply, and the next prompt answers it.
//
// Cancelling a turn cancels its run. Closing the editor does not cancel the run: it continues in this process or in the next one,
// and the next prompt of the session waits for it.
//
// The history of a loaded session contains the conversation of the last turn with pictures, files and tool calls. If there is no
// conversation, it contains the results of all turns with the first 500 bytes of their prompts. Stone does not use the editor's
// files, terminals and MCP servers: a pipeline has the effects that the serving program grants.
package acp
