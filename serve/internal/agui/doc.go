// Package agui speaks AG-UI, version 1.0: it reads a RunAgentInput, and writes the parts of a turn as
// events. The package has no server and no journal.
//
// Text is streamed before it is accepted. A MESSAGES_SNAPSHOT without it takes rejected text back. Each open
// question is an interrupt in the run's outcome; the next run's resume entries answer it. A result that is not
// text becomes the state.
package agui
