// Package agui implements AG-UI, version 1.0: it reads a RunAgentInput and writes the parts of a turn as events. It has no server
// and no journal.
//
// Text is streamed before it is accepted. If the text is rejected, a MESSAGES_SNAPSHOT without it retracts it. Each open question
// is an interrupt in the outcome of the run, and the resume entries of the next run answer it. A result other than text becomes
// the state.
//
// A request's tools are passed to the pipeline, if it accepts any. A run that waits for the results of their calls finishes with
// success. The tool messages at the end of the next request are the results.
package agui
