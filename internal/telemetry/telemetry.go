// Package telemetry describes the export of spans for package cli, which does not link package x/otlp.
package telemetry

import (
	"context"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/kinds"
)

// An Exporter sends the spans of runs to a collector.
type Exporter struct {
	kinds.Kind // reads the section telemetry of a configuration

	// Watch sends the spans of runs in progress to the collector named in the environment or, if none is, in the section. Section
	// returns what was read of the configuration; nil means nothing. Without a collector, Watch returns nil.
	Watch func(section func() (*kinds.Reader, error), note func(secrets ...string), say func(line string)) (Watcher, error)

	// Export prepares sending a trace file to the collector with the address to. The error means wrong usage. Send returns the
	// number of spans that the collector accepted.
	Export func(file, to string, say func(line string)) (send func(context.Context) (int, error), err error)
}

// A Watcher sends the spans of any number of runs. Close returns once they are sent or dropped.
type Watcher interface {
	event.Watcher
	Close()
}
