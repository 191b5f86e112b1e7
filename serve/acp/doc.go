// Package acp serves published pipelines to an editor that speaks the Agent Client Protocol, over the
// standard input and output of a program that the editor starts. The command stone acp is this.
//
// # Sessions
//
// A session is a label of runs, each of which is a turn. So sessions are durable: another process over
// the journal loads them. A prompt starts a run of the pipeline that is the mode of the session, with the prompt as its
// input where that is a text or has one, and with the result of the turn before if the pipeline reads it, as
// an agent with agent.ConversationOf does. Files that the prompt refers to are given by their addresses, embedded ones
// with their text. Pictures and sounds are refused.
//
// Text and reasoning are streamed as models write them. The calls of tools are shown with their arguments and results, and so
// are the leaves below a pipeline. A turn that waits
// for an answer asks for permission, with the choices of the question: always and never are the protocol's
// standing permissions. The request is withdrawn when someone else answers. A question without choices is
// the agent's reply, and the next prompt is the answer to it.
//
// Several editors may open a session over one journal. A prompt starts its turn after the turns of the others, and
// continues them.
//
// Cancelling a turn cancels its run. If the editor goes, its runs go on, here until the program
// ends and then in the next one, and the next prompt of the session waits for them.
//
// The loaded history has the conversation of the last turn, or else the results of all turns with the first 500 bytes of
// their prompts. Files and terminals of the editor, and the MCP servers that it names, are not used: what
// pipelines may do is granted where they are served.
package acp
