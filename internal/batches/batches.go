// Package batches describes runs whose models answer in batches of their providers, for packages cli and serve, which do not link
// package x/batch.
package batches

import (
	"context"
	"errors"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/journal"
)

// Question is the name of the question of a run waiting for batches.
const Question = "batch"

// ErrNotLinked reports a program without the part.
var ErrNotLinked = errors.New("this program sends no batches: give cli.Main the part of package github.com/stonelayer/stone/x/batch, or set serve.Config.Batches to it")

// A Sender sends the model requests of runs in batches.
type Sender struct {
	// Run runs a pipeline, or resumes its run, like batch.Run.
	Run func(context.Context, stone.Ashlar, stone.Config, Config) (stone.Result, error)
	// Cancel cancels the batches of a run, like batch.Cancel.
	Cancel func(context.Context, stone.Ashlar, stone.Config, journal.Options, Config) error
	// Progress returns the progress of the batches that an error of Run waits for. Other errors report false.
	Progress func(error) (string, bool)
}

// Part makes a Sender a part of a program, see cli.Part.
func (*Sender) Part() {}

// Config configures Run and Cancel, like batch.Config.
type Config struct {
	Journal journal.Journal
	NoWait  bool
	Drain   <-chan struct{}
	Say     func(progress string) // called when the progress has changed; may be nil
}

// Made reports whether batches were made for a run, perhaps by another process.
func Made(ctx context.Context, j journal.Journal, run string) (bool, error) {
	notes, ok := j.(owed.Store)
	if !ok {
		return false, nil
	}
	all, err := notes.Batches(ctx, run)
	return len(all) > 0, err
}
