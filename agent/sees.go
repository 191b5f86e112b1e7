package agent

import (
	"slices"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
)

// samples contains one media type of each kind. A model that accepts the sample is assumed to accept the whole kind.
var samples = []string{"image/png", "audio/wav", "video/mp4", "application/pdf"}

// mediaTypes returns the media types that Config.Media can return: the types that the schemas of its nodes mark, or one type of
// each kind if they mark none.
func (a *agent) mediaTypes() (types []string) {
	for _, q := range a.cfg.Media.Queries() {
		if q.Type() == nil {
			return samples
		}
		for _, marked := range structured.MediaTypes(q.Type().Schema()) {
			kind, isKind := strings.CutSuffix(marked, "*")
			i := slices.IndexFunc(samples, func(one string) bool { return strings.HasPrefix(one, kind) })
			switch {
			case !isKind:
				types = append(types, marked)
			case i >= 0:
				types = append(types, samples[i])
			default: // the schema does not limit the media types
				return samples
			}
		}
	}
	if types == nil {
		return samples
	}
	return types
}

// refused returns the first error from check, provided that check rejects every type that Config.Media can return. If the media
// are optional, the model need not accept any type.
func (a *agent) refused(check func(*llm.Media) error) (why error) {
	if a.cfg.Media == nil || a.model == nil {
		return nil
	}
	if q := a.cfg.Media.Queries(); len(q) > 0 && !slices.ContainsFunc(q, func(q dag.Query) bool { return !q.IsOptional() }) {
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
