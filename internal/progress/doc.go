// Package progress shows a person how far a run is.
//
// A Display is a slog.Handler for the events of a run. On a terminal it draws
// the tree of ashlars in place, at most ten times a second and never more lines
// than the screen has; elsewhere it writes one plain line for what starts, ends
// or fails. Lanes are counted, not kept: a run of a million lanes takes no more
// memory than one of ten.
package progress
