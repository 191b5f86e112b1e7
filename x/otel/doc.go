// Package otel sends the events of runs to OpenTelemetry as spans, while the runs are
// running. It is a separate module, so that programs that do not need it do not download
// the OpenTelemetry SDK.
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
// A run is a span below the span in the context of stone.Run, if it has one. Below it, each visit of an ashlar, lane, model turn,
// tool call and attempt of a call is a span. Other events are events of the span to which they belong. A span that failed has the
// status error and the kind of the failure under error.type.
//
// Names follow the semantic conventions for generative AI, version 1.41. Attributes without a
// conventional name begin with "stone.". The command stone export --as otlp sends existing trace files to a
// collector, as the same spans.
//
// Contents stay in the process: prompts, answers, and inputs and results of tools are not
// exported. Reasons of failures, questions, answers of people, labels of lanes and the attributes of
// custom events are exported; event.Clean removes secrets from them.
//
// # Cost
//
// Ending a span puts it into the queue of the SDK's batch processor, which drops
// spans when it is full: a run does not wait for the collector.
package otel
