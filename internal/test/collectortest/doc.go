// Package collectortest tests x/otlp against a real collector, the OTLP receiver of
// the OpenTelemetry collector, on a port of this machine. It is a separate module, so that only this test needs
// the collector.
package collectortest
