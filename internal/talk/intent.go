package talk

import (
	"context"
	"iter"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/llm"
)

var (
	requestType = dag.NewType[llm.Request]("request")
	replyType   = dag.NewType[llm.Reply]("reply")
	textType    = dag.NewType[string]("text")
	inputType   = dag.NewType[call.JSON]("input")
	answerType  = dag.NewType[call.JSON]("answer")
)

// Intent returns a pipeline that calls an intent: the Applicator selects a capability, checks its answer, and continues with the
// next capability if the answer is not good enough.
//
// If the intent has no in-schema, each turn calls its capabilities (see call.Model). If the in-schema is "req/text", the input is
// the text of the conversation. For any other schema, the input is the JSON in a single message.
func Intent(app *call.Applicator, intent string) stone.Ashlar {
	switch app.Intents[intent].In {
	case "", terms.AnyRequest:
		model := call.Model(app, call.Spec{Intent: intent, Done: call.Done{Must: []string{"response-format"}}})
		return stone.Func("answer", requestType, replyType, func(ctx context.Context, req llm.Request) (llm.Reply, error) {
			reply, err := llm.Collect(ctx, heard{model, event.At(ctx).Speak("answer")}, &req)
			if err != nil {
				return llm.Reply{}, err
			}
			return *reply, nil
		}, stone.Detail{Value: onlySteps{}})
	case terms.TextRequest:
		return asking(app, intent, dag.Derive(textType, func(text string) any { return map[string]string{"text": text} }))
	}
	return asking(app, intent, call.From(inputType))
}

// onlySteps tells package stone that a leaf has no effects except through its call.
type onlySteps struct{}

func (onlySteps) OnlySteps() bool { return true }

// heard is a model that also sends its answers to a voice, so that watchers receive them.
type heard struct {
	llm.Model
	voice *event.Voice
}

// Stream implements llm.Model.
func (h heard) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range h.Model.Stream(ctx, req) {
			switch {
			case d.Kind == llm.Text && d.Text != "":
				h.voice.Say(event.Text, d.Text)
			case d.Kind == llm.Restart && d.Err != nil:
				h.voice.Again(d.Err.Error())
			case d.Kind == llm.Restart:
				h.voice.Again("the model is asked again")
			case d.Kind == llm.Done:
				h.voice.End()
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func asking(app *call.Applicator, intent string, input dag.Reader[any]) stone.Ashlar {
	return call.New("answer", answerType, call.Spec{Applicator: app, Intent: intent, Input: input})
}
