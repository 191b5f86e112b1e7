package serve

import (
	"context"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/talk"
	"github.com/stonelayer/stone/llm"
)

// kindsOfMedia lists the kinds of media that a pipeline may accept, each with an example. A model that accepts the example is
// assumed to accept the whole kind.
var kindsOfMedia = []struct{ of, example string }{{"image/*", "image/png"}, {"audio/*", "audio/wav"}, {"video/*", "video/mp4"}, {"application/pdf", "application/pdf"}}

// files returns the kinds of media that a pipeline accepts as attachments of a message.
func (s *Server) files(p *Pipeline) (kinds []string) {
	for _, one := range kindsOfMedia {
		if name := talk.MediaInput(p.Ashlar); name != "" && sees(s.cfg.Base(), p.Ashlar, name, &llm.Media{Type: one.example, Data: []byte{0}}) == nil {
			kinds = append(kinds, one.of)
		}
	}
	return kinds
}

// shows checks whether the models that receive an input's media can handle them.
func (s *Server) shows(_ context.Context, t *task) error {
	name := talk.MediaInput(t.Ashlar)
	if name == "" {
		return nil
	}
	media, err := agent.MediaOf(dag.NewType[[]*llm.Media](name)).From(t.run.Input)
	if err != nil {
		return invalid("%v", err)
	}
	for _, m := range media {
		if m == nil {
			return invalid("%q has a null: leave it out", name)
		}
		if err := sees(s.cfg.Base(), t.Ashlar, name, m); err != nil {
			return invalid("the pipeline %s cannot show its model %s: %v", t.Name, m, err)
		}
	}
	return nil
}

// sees returns the reason why an agent of a pipeline cannot pass the media of an input to its model, or nil.
func sees(ctx context.Context, p stone.Ashlar, input string, m *llm.Media) error {
	model, cfg, ok := agent.ConfigOf(p)
	if ok && cfg.Media != nil && slices.ContainsFunc(cfg.Media.Queries(), func(q dag.Query) bool { return q.Type() != nil && q.Type().Name() == input }) {
		if err := llm.CheckMedia(model, llm.RoleUser, m); err != nil {
			return err
		}
		if err := llm.CheckFit(ctx, model, &llm.Request{Model: cfg.Model, Messages: []llm.Message{llm.User("", m)}}); err != nil {
			return err
		}
	}
	for _, c := range p.Children() {
		if err := sees(ctx, c, input, m); err != nil {
			return err
		}
	}
	return nil
}
