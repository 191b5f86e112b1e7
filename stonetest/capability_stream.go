package stonetest

import (
	"encoding/json"
	"testing"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/eventtest"
)

func testStream(t *testing.T, c Capability) {
	if c.Stream == nil {
		return
	}
	var heard eventtest.Recorder
	ctx, req := eventtest.Context(t.Context(), &heard), *c.Stream
	req.Voice = event.At(ctx).Speak("streamed")
	reply, err := c.Make(t).Invoke(ctx, &req)
	if check(t, reply, err); err != nil {
		return
	}
	var out struct{ Text string }
	if err := json.Unmarshal(reply.Out, &out); err != nil {
		t.Errorf("the out of a streamed answer: %v", err)
	}
	said := ""
	for _, e := range heard.Events() {
		switch d := e.Data.(type) {
		case event.Delta:
			if d.Kind == event.Text {
				said += d.Text
			}
		case event.Retracted:
			said = ""
		}
	}
	if said == "" || said != out.Text {
		t.Errorf("the pieces are %q, want those of the text %q", said, out.Text)
	}
	again, err := c.Make(t).Invoke(t.Context(), c.Stream)
	if check(t, again, err); err == nil && string(again.Out) != string(reply.Out) {
		t.Errorf("when nothing listens the out is %s, otherwise %s", again.Out, reply.Out)
	}
}
