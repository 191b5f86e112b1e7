// Package telemetry declares the interface for exporting spans, so that package cli can export spans without linking package
// x/otlp.
package telemetry

import (
	"context"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/kinds"
)

// An Exporter sends the spans of runs to a collector.
type Exporter struct {
	kinds.Kind // reads the section "telemetry" of a configuration

	// Watch returns a Watcher that sends spans to the collector specified in the environment or, if there is none, in the
	// section. The function section returns the Reader that has read the configuration, or nil if there is no configuration. If
	// no collector is specified, Watch returns nil.
	Watch func(section func() (*kinds.Reader, error), note func(secrets ...string), say func(line string)) (Watcher, error)

	// Export prepares to send a trace file to the collector with the address to. An error means incorrect usage. The function
	// send returns the number of spans that the collector accepted.
	Export func(file, to string, say func(line string)) (send func(context.Context) (int, error), err error)
}

// A Watcher sends the spans of any number of runs. Close returns when all of them have been sent or dropped.
type Watcher interface {
	event.Watcher
	Close()
}
