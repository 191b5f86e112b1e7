// Package agui implements AG-UI, version 1.0. It parses a RunAgentInput, and converts the parts of a turn to events. It uses
// neither a server nor a journal.
//
// Text is streamed before it is accepted. If it is rejected, it is retracted by a MESSAGES_SNAPSHOT that does not contain it.
// Each open question is an interrupt in the outcome of the run, and is answered by the resume entries of the next run. A result
// other than text becomes the state.
//
// The tools in a request are passed to the pipeline if the pipeline accepts tools. A run that waits for the results of their
// calls finishes with success. The results are the tool messages at the end of the next request.
package agui
