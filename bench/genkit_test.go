package bench

import (
	"context"
	"sync"

	"github.com/firebase/genkit/go/core"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// untraced gives genkit a tracer provider that samples nothing. It insists on
// one of the SDK and would otherwise make one that records every span.
var untraced = sync.OnceFunc(func() {
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())))
})

// genkitSequence is a flow whose steps are core.Run. The flow itself takes the
// number of steps, so that its input and output cost next to nothing.
func genkitSequence[T content[T]](steps int, first T) (func() (T, error), error) {
	untraced()
	names := stepNames(steps)
	var last *T
	flow := core.NewFlow("line", func(ctx context.Context, n int) (int, error) {
		v := &first
		for _, name := range names[:n] {
			var err error
			v, err = core.Run(ctx, name, func() (*T, error) {
				next := (*v).next()
				return &next, nil
			})
			if err != nil {
				return 0, err
			}
		}
		last = v
		return (*v).count(), nil
	})
	return func() (v T, err error) {
		if _, err := flow.Run(context.Background(), steps); err != nil {
			return v, err
		}
		return *last, nil
	}, nil
}
