// Package acp serves published pipelines to an editor that speaks the Agent Client Protocol, over the standard input and output
// of a program that the editor starts. The command stone acp serves it.
//
// # Sessions
//
// Each run is a turn, and a label names its session. Sessions are therefore durable: another process with the same journal can
// load them. A prompt starts a run of the pipeline chosen as the session's mode. The prompt becomes the input, or a text in it. A
// pipeline that reads the previous turn's result gets it, as an agent with agent.ConversationOf does. A file reference is passed
// as its address, an embedded file as its text. An agent with agent.MediaOf accepts pictures, sounds and other files; other
// pipelines refuse them.
//
// Several editors may share a session in one journal. A turn's run is named after its number, so a prompt waits for another
// editor's turn and continues after it.
//
// # Turns
//
// Text and reasoning are streamed as models write them. Tool calls and a pipeline's other leaves are shown with arguments and
// results. A question with choices becomes a permission request; always and never become the protocol's standing permissions. The
// request is withdrawn if someone else answers. Any other question is sent as the agent's reply, and the next prompt answers it.
//
// Cancelling a turn cancels its run. Closing the editor does not: the run continues in this process or in the
// next one, and the next prompt of the session waits for it.
//
// A loaded history has the last turn's conversation with pictures, files and tool calls, or else all turns' results with the
// first 500 bytes of their prompts. Stone does not use the editor's files, terminals and MCP servers: a pipeline has the effects
// granted by the program that serves it.
package acp
