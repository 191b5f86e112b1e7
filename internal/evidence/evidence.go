// Package evidence declares the interface of evidence files, so that package cli can write and check them without linking package
// x/evidence.
package evidence

import (
	"context"
	"io"

	"github.com/stonelayer/stone/journal"
)

// Files provides the functions that write and check evidence files.
type Files struct {
	// Write writes an evidence file for a run, and returns the checksum in its seal.
	Write func(context.Context, io.Writer, journal.Journal, journal.RunInfo) (seal string, err error)
	// Verify returns the problems found in a file or, if the file is unchanged, a description of its contents.
	Verify func(io.Reader) (contents string, problems []string, err error)
}

// Part makes Files usable as a part of a program; see cli.Part.
func (*Files) Part() {}
