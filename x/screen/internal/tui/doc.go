// Package tui shows a run on the full screen of a terminal, where a person can take part in the run.
//
// A header line shows the state of the run. The tree of ashlars is beside the transcript or, on a narrow terminal, above it. The
// transcript contains the text and thinking of models as they arrive, their tool calls, failures, questions and the result. Below
// are the open question, if there is one, and the keys.
//
// The run starts at once. A pipeline that needs input should begin with stone.Ask. When the run has ended, the display remains
// until the person leaves it, and can run the pipeline again.
//
// # How it works
//
// The run and the display share only a feed and a tree, both protected by locks. The feed is an event handler, observes agents
// and is the run's frontend. It collects events, joins the tokens of each speaker, and is emptied at most thirty times a second.
// So a fast model does not make the screen redraw for each token, and a slow terminal does not delay the run: events that arrive
// too fast are dropped, and the transcript shows how many. The transcript keeps at most a megabyte, and also shows when its
// oldest lines have been dropped.
//
// All text passes through package text, so that no output from a model, a tool or a pipeline can reach the terminal as a control
// sequence.
package tui
