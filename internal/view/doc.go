// Package view decides how a recorded run is shown to people, so that the command, the screen, the pages and the API
// tell the same: the [Head] of a run, as in lists, and the [Row] of each of its branches, with state, reason and what
// was possibly paid. Its users only format.
package view
