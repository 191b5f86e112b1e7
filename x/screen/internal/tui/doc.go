// Package tui shows a run on the full screen of a terminal and lets a person take part
// in it.
//
// A header line shows the state of the run. The tree of its ashlars is beside or, on
// a narrow terminal, above the transcript: the text and thinking of models as they
// arrive, their tool calls, failures, questions and the result. Below are the open
// question, if any, and the keys.
//
// The run starts at once; a pipeline that needs input first starts with stone.Ask.
// The display stays after the run has ended until the person leaves it, and can run
// the pipeline again.
//
// # How it works
//
// The run and the display share nothing but a feed and a tree, both behind locks. The feed is the run's handler of events,
// observer of agents and frontend: it collects events, joins the tokens of one speaker, and is emptied at most thirty times a
// second. A fast model therefore does not redraw the screen for each token, and a slow terminal does not delay the run: events
// that arrive too fast are left out, and the transcript notes their number. It also notes when its oldest lines have been
// dropped, since it keeps at most a megabyte.
//
// All text passes through package text: no output from a model, a tool or a pipeline reaches the terminal as a control sequence.
package tui
