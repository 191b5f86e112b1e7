// Package agui speaks AG-UI, version 1.0: it reads a RunAgentInput, and writes the parts of a turn as
// events. The package has no server and no journal.
//
// A text is streamed before it is accepted. If it is rejected, a MESSAGES_SNAPSHOT without it takes it
// back. Every open question is an interrupt of the outcome of the run, and the resume entries of the next
// run answer it. A result that is no text is the state.
package agui
