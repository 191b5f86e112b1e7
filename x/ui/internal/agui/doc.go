// Package agui speaks AG-UI, version 1.0: it reads a RunAgentInput, and writes the parts of a turn as
// events. It has no server and no journal.
//
// Text is streamed before it is accepted. When it is rejected, a MESSAGES_SNAPSHOT without it takes it back. Each open
// question is an interrupt in the outcome of the run, and the resume entries of the next run answer it. A result other than
// text becomes the state.
//
// The tools of a request go to the pipeline, if it takes any. A run that waits for the result of their calls finishes with
// success. The tool messages at the end of the next request are the results.
package agui
