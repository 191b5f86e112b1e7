package cli

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/otlp"
	"github.com/stonelayer/stone/internal/trace"
	"github.com/stonelayer/stone/journal"
)

// telemetry sends the spans of the runs of a command.
type telemetry struct {
	once sync.Once
	live *otlp.Live // nil if no collector is configured
	err  error      // the configuration is not trusted
}

func (t *telemetry) close() {
	if t.live != nil {
		t.live.Close()
	}
}

// watching returns a function that returns the watchers of a run: Config.Watch, and an exporter if the environment or the
// configuration names a collector. The error means that the configuration is not trusted. Other faults are printed, and then
// nothing is sent.
func (a *app) watching() (watch func(journal.RunInfo) event.Watcher, err error) {
	t := &a.telemetry
	t.once.Do(func() {
		cfg, err := otlp.FromEnv(os.Getenv)
		if err == nil && cfg.URL == "" {
			cfg, err = a.configuredTelemetry()
		}
		if err == nil && t.err == nil && cfg.URL != "" {
			t.live, err = otlp.NewLive(cfg, func(line string) { a.complain("%s", line) })
		}
		if err != nil {
			a.complain("telemetry: nothing is sent: %v", err)
		}
	})
	return func(of journal.RunInfo) event.Watcher {
		var all []event.Watcher
		if a.Watch != nil {
			all = append(all, a.Watch(of))
		}
		if t.live != nil {
			all = append(all, t.live)
		}
		return event.All(all...)
	}, t.err
}

// configuredTelemetry reads only the section telemetry of the configuration, because a run may not need the rest.
func (a *app) configuredTelemetry() (otlp.Config, error) {
	of, file, err := config.ReadTelemetry(a.calls.config)
	if err != nil || of.URL == "" {
		return otlp.Config{}, err
	}
	if a.calls.config == "" {
		// Do not ask for trust here: the question would have to show everything that the file reaches.
		f := found{dir: filepath.Dir(file), wants: []string{of.Reaches()}, files: []string{file}}
		if a.trusting {
			trusting.Store(true)
		}
		if a.telemetry.err = f.trusted(); a.telemetry.err != nil {
			return otlp.Config{}, nil
		}
	}
	cfg, secrets, err := of.Read()
	a.secrets.Note(secrets...)
	return cfg, err
}

// watched returns the watcher of a run. Run is nil if the run is not recorded.
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
	f.StringVar(&opts.Ashlar, "ashlar", "", "only of the ashlar `NAME`")
	f.Var(most(&opts.Turn), "turn", "only of the model's turn `N`")
	f.BoolVar(&opts.Last, "last", false, "show the last match, not the first")
}

func (a *app) traces() trace.Command { return trace.Command{Out: a.Stdout, Err: a.Stderr} }
