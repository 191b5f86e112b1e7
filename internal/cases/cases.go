// Package cases lets package cli use recorded runs as cases of an evaluation without linking package x/lab.
package cases

import (
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/journal"
)

// An Of returns the runs that q selects, as cases of an evaluation. Grant lists the effects that the cases may have when they are
// run again.
type Of func(j journal.Journal, q journal.Query, grant []string) past.Runs

// Part makes an Of usable as a part of a program; see cli.Part.
func (Of) Part() {}
