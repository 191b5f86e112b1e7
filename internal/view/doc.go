// Package view determines how a recorded run is shown, so that the command, the screen, the pages and the API agree: the [Head]
// of a run in lists, and a [Row] for each branch, with its state, reason and possible cost. The users of the package only format
// these values.
package view
