// Package otel sends the events of runs to OpenTelemetry as spans while the runs are in progress. It is a separate module, so
// that programs that do not need it do not download the OpenTelemetry SDK.
//
//	provider, err := otel.NewProvider(ctx, "support") // endpoint from OTEL_EXPORTER_OTLP_ENDPOINT
//	if err != nil {
//		return err
//	}
//	defer provider.Shutdown(context.WithoutCancel(ctx))
//	res, err := stone.Run(ctx, pipeline, stone.Config{Watch: otel.Watch(provider)})
//
// # Spans
//
// A run is a span below the span in the context passed to stone.Run, if there is one. Below the run, each visit of an ashlar,
// each lane, model turn, tool call and attempt of a call is a span. Any other event becomes an event of the span to which it
// belongs. A failed span has the status error, and its attribute error.type is the kind of the failure.
//
// Names follow the semantic conventions for generative AI, version 1.41. Attributes for which the conventions have no name begin
// with "stone.". The command stone export --as otlp sends existing trace files to a collector as the same spans.
//
// Contents stay in the process: prompts, answers, and inputs and results of tools are not exported. Reasons of failures,
// questions and people's answers, labels of lanes and the attributes of custom events are exported; event.Clean removes secrets
// from these.
//
// # Cost
//
// When a span ends, it is put into the queue of the SDK's batch processor, which drops spans when the queue is full. So a run
// never waits for the collector.
package otel
