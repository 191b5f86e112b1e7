// Package display declares the interface of the terminal screen, so that package cli can show pipelines on it without linking it.
package display

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// Config tells a Screen what to run and where to show it. Pipeline, In, Out and Show are required, and so is Read if Needs is not
// empty.
type Config struct {
	Pipeline stone.Ashlar
	Grant    []string  // effects granted to runs; nil means all
	In       io.Reader // input of the terminal
	Out      io.Writer
	By       string // name of the person who answers questions; see ask.Answer
	// Run runs the pipeline. Nil means stone.Run.
	Run func(context.Context, stone.Ashlar, stone.Config) (stone.Result, error)
	// Needs lists the inputs that the user must type before a run; it may be empty. Read converts the typed text to the input of
	// the run.
	Needs string
	Read  func(typed string) (dag.DAG, error)
	// Check returns the findings for the pipeline. Nil means stone.Validate.
	Check func(stone.Config) stone.Findings
	// Show returns the text to show for a result, or "" for the default.
	Show func(stone.Result) string
	// If Wait is set, the run, which may cost money, starts only when the user presses Enter.
	Wait bool
	// Runs lists the newest recorded runs, one per line, in the given number of columns. If it is nil, no runs are listed.
	Runs func(columns int) []string
	Now  func() time.Time // nil means time.Now
}

// ErrLeft is the error if the user leaves the screen during a run.
var ErrLeft = errors.New("you left before the run ended: steps in progress are lost")

// A Screen runs the pipeline and shows it until the user leaves. It returns the result and the error of the last run, or ErrLeft
// if that run has not ended.
type Screen func(context.Context, Config) (stone.Result, error)

// Part makes a Screen usable as a part of a program; see cli.Part.
func (Screen) Part() {}
