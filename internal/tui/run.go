package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stonelayer/stone"
)

// Config says what is run and where it is shown. All but Run and Now is needed.
type Config struct {
	Pipeline stone.Ashlar
	Grant    []string  // what runs may do; nil is everything
	In       io.Reader // the terminal
	Out      io.Writer
	// Run runs the pipeline; nil is stone.Run.
	Run func(context.Context, stone.Ashlar, stone.Config) (stone.Result, error)
	// Show returns what a result is shown as, "" for nothing.
	Show func(stone.Result) string
	Now  func() time.Time // nil is time.Now
}

// A frame is drawn this often at most; the clock of a run every third time.
const frames = time.Second / 30

// Run runs the pipeline and shows it, until the person leaves. It returns what
// came of the last run: its error is that of stone.Run, or ErrLeft if that run was
// still under way, which it then may still be. When ctx is done, the run is
// cancelled and the display ends with it.
func Run(ctx context.Context, cfg Config) (stone.Result, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	f := &feed{}
	m := newModel(ctx, cfg, f)
	p := tea.NewProgram(m, tea.WithInput(cfg.In), tea.WithOutput(cfg.Out), tea.WithoutSignalHandler())
	stop := f.pump(ctx, p.Send)
	_, err := p.Run()
	stop()
	if err != nil {
		if m.cancel != nil {
			m.cancel(err)
		}
		return m.result, errors.Join(ErrLeft, fmt.Errorf("the display broke down: %w", err))
	}
	return m.outcome()
}

// pump sends a frame whenever there is something to be drawn. The function it
// returns ends that, once the program has ended.
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
