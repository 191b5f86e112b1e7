// Package cases describes recorded runs as cases of an evaluation, for package cli, which does not link package x/lab.
package cases

import (
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/journal"
)

// Of returns the runs of a query as cases. Grant lists the effects that they may repeat.
type Of func(j journal.Journal, q journal.Query, grant []string) past.Runs

// Part makes an Of a part of a program, see cli.Part.
func (Of) Part() {}
