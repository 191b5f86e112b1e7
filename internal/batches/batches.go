// Package batches declares the interface with which packages cli and serve send model requests in batches, without linking package
// x/batch.
package batches

import (
	"context"
	"errors"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/journal"
)

// Question is the name of the question that a run asks while it is waiting for batches.
const Question = "batch"

// ErrNotLinked is the error for a program that does not link package x/batch.
var ErrNotLinked = errors.New("this program sends no batches: give cli.Main the part of package github.com/stonelayer/stone/x/batch, or set serve.Config.Batches to it")

// A Sender provides the functions of package x/batch, which send the model requests of runs in batches.
type Sender struct {
	// Run runs a pipeline, or resumes its run. See batch.Run.
	Run func(context.Context, stone.Ashlar, stone.Config, Config) (stone.Result, error)
	// Cancel cancels the batches of a run. See batch.Cancel.
	Cancel func(context.Context, stone.Ashlar, stone.Config, journal.Options, Config) error
	// Progress returns the progress of the batches that a run is waiting for, given the error from Run. It returns false for any
	// other error.
	Progress func(error) (string, bool)
}

// Part makes a Sender usable as a part of a program; see cli.Part.
func (*Sender) Part() {}

// Config configures Run and Cancel. See batch.Config.
type Config struct {
	Journal journal.Journal
	NoWait  bool
	Drain   <-chan struct{}
	Say     func(progress string) // called with the new progress when it changes; may be nil
}

// Made reports whether any process has created batches for the given run.
func Made(ctx context.Context, j journal.Journal, run string) (bool, error) {
	notes, ok := j.(owed.Store)
	if !ok {
		return false, nil
	}
	all, err := notes.Batches(ctx, run)
	return len(all) > 0, err
}
