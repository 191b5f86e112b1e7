package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/structured"
)

// ofKind is a type of each kind of media, which stands for the others of its kind.
var ofKind = []string{"image/png", "audio/wav", "video/mp4", "application/pdf"}

// mediaTypes returns the types that Media can have, as far as the schemas of the nodes that it
// reads tell.
func (a *agent) mediaTypes() (types []string) {
	for _, q := range a.cfg.Media.Queries() {
		if q.Type() == nil {
			return ofKind
		}
		for _, marked := range structured.MediaTypes(q.Type().Schema()) {
			kind, isKind := strings.CutSuffix(marked, "*")
			i := slices.IndexFunc(ofKind, func(one string) bool { return strings.HasPrefix(one, kind) })
			switch {
			case !isKind:
				types = append(types, marked)
			case i >= 0:
				types = append(types, ofKind[i])
			default: // of any kind
				return ofKind
			}
		}
	}
	if types == nil {
		return ofKind
	}
	return types
}

// blind returns why the model can take no media that Media can have, by a check of one.
func (a *agent) blind(check func(*llm.Media) error) (why error) {
	if a.cfg.Media == nil || a.model == nil {
		return nil
	}
	for _, t := range a.mediaTypes() {
		err := check(&llm.Media{Type: t, Data: []byte{0}})
		if err == nil {
			return nil
		}
		if why == nil {
			why = err
		}
	}
	return why
}

// misfit returns why the protocol of the model has no form for the media.
func (a *agent) misfit() error {
	return a.blind(func(m *llm.Media) error { return llm.CheckMedia(a.model, llm.RoleUser, m) })
}

// unseen returns why the model cannot read the media, by the table of ctx.
func (a *agent) unseen(ctx context.Context) error {
	return a.blind(func(m *llm.Media) error {
		return llm.CheckFit(ctx, a.model, &llm.Request{Model: a.cfg.Model, Messages: []llm.Message{llm.User("", m)}})
	})
}
