package tui

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/display"
)

// Config configures the pipeline and the terminal.
type Config = display.Config

// frames is the minimum time between two frames. The clock of a run advances with every third frame.
const frames = time.Second / 30

// Run runs the pipeline and shows it until the person leaves. It returns the outcome of the last run. The error comes from
// stone.Run, or is display.ErrLeft if the person left before the run had ended; the run may then still be in progress. When ctx is
// done, the run is canceled, and then the display ends.
func Run(ctx context.Context, cfg Config) (stone.Result, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	f := &feed{by: cfg.By}
	m := newModel(ctx, cfg, f)
	p := tea.NewProgram(m, tea.WithInput(cfg.In), tea.WithOutput(cfg.Out), tea.WithoutSignalHandler())
	stop := f.pump(ctx, p.Send)
	_, err := p.Run()
	stop()
	if err != nil {
		if m.cancel != nil {
			m.cancel(err)
		}
		return m.result, errors.Join(display.ErrLeft, fmt.Errorf("the display broke down: %w", err))
	}
	return m.outcome()
}

// pump sends a frame to the program whenever something has to be drawn. The caller must call the returned function stop after the
// program has ended.
func (f *feed) pump(ctx context.Context, send func(tea.Msg)) (stop func()) {
	done := make(chan struct{})
	var pumping sync.WaitGroup
	pumping.Go(func() {
		tick := time.NewTicker(frames)
		defer tick.Stop()
		ending := ctx.Done()
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-ending:
				ending = nil
				send(leave{})
			case <-tick.C:
				if !f.empty() || f.running.Load() && n%3 == 0 {
					send(frame{})
				}
			}
		}
	})
	return func() {
		close(done)
		pumping.Wait()
	}
}
