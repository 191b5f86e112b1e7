// Package progress shows a person how far a run is.
//
// A [Tree] collects the events of a run by the places of its pipeline.
// Lanes are counted, not kept: a run of a million lanes takes no more memory than
// one of ten.
//
// A [Display] is an event.Watcher that keeps a Tree and shows it. On a terminal it draws in place, at most ten times a second and
// never more lines than the screen has; elsewhere it writes one plain line for each start, end and failure. Both show what the
// run has spent.
package progress
