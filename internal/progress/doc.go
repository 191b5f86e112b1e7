// Package progress shows the progress of a run.
//
// A [Tree] collects the events of a run for each place of its pipeline. Lanes are only counted, so a run with a million lanes
// takes no more memory than a run with ten.
//
// A [Display] is an event.Watcher that keeps a Tree and shows it. On a terminal it draws in place, at most ten times a second and
// never more lines than fit on the screen. Elsewhere it writes plain lines when steps end, fail or take long. Both show what the
// run has spent.
package progress
