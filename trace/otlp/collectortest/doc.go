// Package collectortest holds trace/otlp to a real collector: the OTLP receiver of
// the OpenTelemetry collector, on a port of this machine, and to the names that
// the conventions have at version 1.41. It is a module of its own, so that nobody
// needs the collector who does not run this test.
package collectortest
