//go:build !alone

package bench

import (
	"context"
	"sync"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core"
	"github.com/firebase/genkit/go/genkit"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// untraced gives genkit a tracer provider that samples nothing. genkit requires one of
// the SDK and would otherwise make one that records every span.
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

func genkitTurns(s *script) (func() (string, error), error) {
	untraced()
	g := genkit.Init(context.Background())
	call := ai.NewToolRequestPart(&ai.ToolRequest{Name: toolName, Ref: "call_0", Input: map[string]any{"path": "go.mod"}})
	calls, final := ai.NewModelMessage(call), ai.NewModelTextMessage(finalText)
	m := genkit.DefineModel(g, "bench/model", &ai.ModelOptions{Supports: &ai.ModelSupports{Multiturn: true, Tools: true, SystemRole: true}},
		func(_ context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
			message := calls
			if s.over() {
				message = final
			}
			return &ai.ModelResponse{Request: req, Message: message, FinishReason: ai.FinishReasonStop}, nil
		})
	look := genkit.DefineTool(g, toolName, toolText, func(*ai.ToolContext, lookIn) (string, error) { return s.look(), nil })
	return func() (string, error) {
		return genkit.GenerateText(context.Background(), g, ai.WithModel(m), ai.WithSystem(systemText), ai.WithPrompt(userText),
			ai.WithTools(look), ai.WithMaxTurns(s.calls+1))
	}, nil
}
