// Package tui shows a run on the whole of a terminal and lets a person take part
// in it.
//
// A header line tells how the run stands. The tree of its ashlars is beside or,
// on a narrow terminal, above the transcript: what models say and think as it
// comes, the calls of their tools, failures, questions and the result. Below is
// the question that is open, if any, and what the keys do.
//
// The run begins at once; a pipeline that wants to be told something first begins
// with stone.Ask. It ends before the display does, which stays until the person
// leaves it and can run the pipeline again.
//
// # How it works
//
// The run and the display share nothing but a feed and a tree, both behind locks.
// The feed is the run's handler of events, observer of agents and frontend: it
// collects what comes, joins the tokens of one speaker, and is emptied at most
// thirty times a second. So neither does a fast model redraw the screen for each
// token, nor does a slow terminal hold up the run: what the display cannot take in
// is left out, and the transcript says so. It also says when its oldest lines
// have been dropped, since it keeps a megabyte at most.
//
// Everything that is shown passes through package text: nothing that a model, a
// tool or a pipeline says reaches the terminal as a control sequence.
package tui
