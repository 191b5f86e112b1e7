// Package display describes the screen for package cli, which shows pipelines on it without linking it.
package display

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// Config says what to run and where to show it. All fields except Run and Now are
// required.
type Config struct {
	Pipeline stone.Ashlar
	Grant    []string  // effects granted to runs; nil means all
	In       io.Reader // the terminal
	Out      io.Writer
	By       string // who answers questions, see ask.Answer
	// Run runs the pipeline; nil is stone.Run.
	Run func(context.Context, stone.Ashlar, stone.Config) (stone.Result, error)
	// Needs names the inputs that the person has to type, empty if there are none, and Read reads them.
	Needs string
	Read  func(typed string) (dag.DAG, error)
	// Check returns the findings of the pipeline; nil is stone.Validate.
	Check func(stone.Config) stone.Findings
	// Show returns the text to show for a result, or "".
	Show func(stone.Result) string
	// If Wait is set, the run, which may cost money, starts only when the person presses Enter.
	Wait bool
	// Runs lists the newest recorded runs, on lines of the given number of columns; nil lists none.
	Runs func(columns int) []string
	Now  func() time.Time // nil is time.Now
}

// ErrLeft reports that the person left during a run.
var ErrLeft = errors.New("you left before the run ended: steps in progress are lost")

// A Screen runs the pipeline and shows it until the person leaves. It returns the result of
// the last run: its error comes from the run, or is ErrLeft if the run was still running.
type Screen func(context.Context, Config) (stone.Result, error)

// Part makes a Screen a part of a program, see cli.Part.
func (Screen) Part() {}
