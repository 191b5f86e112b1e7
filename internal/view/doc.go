// Package view decides how a recorded run is shown, so the command, the screen, the pages and the API agree: the [Head] of a run
// in lists, and a [Row] for each branch with state, reason and possible cost. Its users only format.
package view
