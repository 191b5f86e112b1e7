// Package evidence describes evidence files for package cli, which does not link package x/evidence.
package evidence

import (
	"context"
	"io"

	"github.com/stonelayer/stone/journal"
)

// Files writes and checks evidence files.
type Files struct {
	// Write writes the evidence of a run, and returns the sum of its seal.
	Write func(context.Context, io.Writer, journal.Journal, journal.RunInfo) (seal string, err error)
	// Verify returns the problems of a file, or what an unchanged one contains.
	Verify func(io.Reader) (contents string, problems []string, err error)
}

// Part makes Files a part of a program, see cli.Part.
func (*Files) Part() {}
