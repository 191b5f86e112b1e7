package calltest

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone/event"
)

// pieces is an event.Sender that keeps what is said.
type pieces struct {
	mu   sync.Mutex
	said []string
}

func (p *pieces) Wants(level slog.Level) bool { return level == event.LevelDelta }
func (p *pieces) Retract(string)              {}

func (p *pieces) Send(d event.Data) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch d := d.(type) {
	case event.Delta:
		if d.Text != "" && d.Kind == event.Text {
			p.said = append(p.said, d.Text)
		}
	case event.Retracted:
		p.said = nil
	}
}

func testStream(t *testing.T, c Case) {
	if c.Stream == nil {
		t.Skip("the case has no Stream")
	}
	heard, req := &pieces{}, *c.Stream
	ctx := context.WithValue(t.Context(), event.Key{}, heard)
	req.Voice = event.At(ctx).Speak("streamed")
	reply, err := c.Make(t).Invoke(ctx, &req)
	check(t, reply, err)
	if err != nil {
		return
	}
	var out struct{ Text string }
	if err := json.Unmarshal(reply.Out, &out); err != nil {
		t.Errorf("the out of a streamed answer: %v", err)
	}
	if len(heard.said) == 0 || strings.Join(heard.said, "") != out.Text {
		t.Errorf("the voice said %q, want the pieces of the text %q", heard.said, out.Text)
	}
	quiet := *c.Stream
	again, err := c.Make(t).Invoke(t.Context(), &quiet)
	if check(t, again, err); err == nil && string(again.Out) != string(reply.Out) {
		t.Errorf("when nothing listens the out is %s, otherwise %s", again.Out, reply.Out)
	}
}
