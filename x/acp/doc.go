// Package acp serves published pipelines to an editor that speaks the Agent Client Protocol, over the
// standard input and output of a program that the editor starts. The command stone acp is this.
//
// # Sessions
//
// A session is a label of runs, and each run is a turn. Sessions are therefore durable: another process over
// the journal loads them. A prompt starts a run of the pipeline that is the mode of the session. The prompt is the
// input, if that is a text or has one. A pipeline that reads the result of the previous turn gets it, as
// an agent with agent.ConversationOf does. A file reference is given as its address, an embedded file
// as its text. Pictures, sounds and other files reach an agent with agent.MediaOf, another one refuses them.
//
// Several editors may open a session over one journal. The run of a turn is named after its number, so a prompt waits for
// the turn of another editor and continues after it.
//
// # Turns
//
// Text and reasoning are streamed as models write them. Tool calls are shown with their arguments and results, and
// the leaves below a pipeline are shown as tool calls too. A question with choices asks for permission; always and never are
// the standing permissions of the protocol. The request is withdrawn when someone else answers. Any other question is
// the reply of the agent, and the next prompt answers it.
//
// Cancelling a turn cancels its run. Closing the editor does not: the run continues in this process or in the
// next one, and the next prompt of the session waits for it.
//
// A loaded history has the conversation of the last turn with its pictures, files and tool calls, or else the results of all turns with the first 500 bytes of
// their prompts. Stone does not use the files, terminals and MCP servers of the editor: a pipeline may do what is granted
// where it is served.
package acp
