package cli

import (
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/telemetry"
	"github.com/stonelayer/stone/internal/trace"
	"github.com/stonelayer/stone/journal"
)

// spans sends the spans of a command's runs to a collector.
type spans struct {
	once sync.Once
	live telemetry.Watcher // nil if no collector is configured
	err  error             // the configuration is not trusted
}

func (s *spans) close() {
	if s.live != nil {
		s.live.Close()
	}
}

// watching returns a function that returns the watchers of a run: Config.Watch, and an exporter if the environment or the
// configuration names a collector. The error means that the configuration is not trusted. Other faults are printed, and then
// nothing is sent.
func (a *app) watching() (watch func(journal.RunInfo) event.Watcher, err error) {
	s := &a.spans
	s.once.Do(func() {
		if a.linked.exporter == nil {
			return
		}
		var err error
		s.live, err = a.linked.exporter.Watch(a.telemetry, a.secrets.Note, func(line string) { a.complain("%s", line) })
		if err != nil {
			a.complain("telemetry: nothing is sent: %v", err)
		}
	})
	return func(of journal.RunInfo) event.Watcher {
		var all []event.Watcher
		if a.Watch != nil {
			all = append(all, a.Watch(of))
		}
		if s.live != nil {
			all = append(all, s.live)
		}
		return event.All(all...)
	}, s.err
}

// telemetry reads only the telemetry section of the configuration, because a run may not need the rest. It returns nil if there
// is no such section.
func (a *app) telemetry() (*kinds.Reader, error) {
	r, file, err := config.ReadSection(a.calls.config, "telemetry", &a.linked.kinds)
	if err != nil || r == nil {
		return nil, err
	}
	if a.calls.config == "" && len(r.Contacts) > 0 {
		// Do not ask for trust here: the question would have to show everything that the file reaches.
		f := found{dir: filepath.Dir(file), files: []string{file}}
		for _, c := range r.Contacts {
			f.wants = append(f.wants, c.String())
		}
		if a.trusting {
			trusting.Store(true)
		}
		if a.spans.err = f.trusted(); a.spans.err != nil {
			return nil, nil
		}
	}
	return r, nil
}

// watched returns the watcher for a run. If the run is not recorded, run is nil.
func (a *app) watched(pipeline string, run *keptRun) (event.Watcher, error) {
	watch, err := a.watching()
	if err != nil {
		return nil, err
	}
	info := journal.RunInfo{Pipeline: pipeline}
	if run != nil {
		info.ID, info.Labels, info.Source = run.id, run.opts.Labels, run.opts.Source
	}
	return watch(info), nil
}

func (a *app) trace(c *cobra.Command) { c.Annotations = map[string]string{onlyFailed: "yes"} }

func (a *app) tally(c *cobra.Command) {
	c.RunE = func(_ *cobra.Command, args []string) error { return a.traces().RunTally(args[0]) }
}

func (a *app) lifecycle(c *cobra.Command) {
	c.RunE = func(_ *cobra.Command, args []string) error { return a.traces().RunLifecycle(args[0]) }
}

func (a *app) payload(c *cobra.Command) {
	var opts trace.PayloadOptions
	c.RunE = func(_ *cobra.Command, args []string) error { return a.traces().RunPayload(args[0], opts) }
	f := c.Flags()
	f.StringVar(&opts.Ashlar, "ashlar", "", "show only requests of the ashlar `NAME`")
	f.Var(most(&opts.Turn), "turn", "show only requests of the model's turn `N`")
	f.BoolVar(&opts.Last, "last", false, "show the last match, not the first")
}

func (a *app) traces() trace.Command { return trace.Command{Out: a.Stdout, Err: a.Stderr} }
