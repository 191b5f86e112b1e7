package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// TestSees checks that an agent is reported before the run if its model takes none of its media.
func TestSees(t *testing.T) {
	marked := func(mediaType string) dag.Reader[[]*llm.Media] {
		s, err := schema.Parse([]byte(`{"type":"object","properties":{"a":{"type":"string","contentEncoding":"base64","contentMediaType":"` + mediaType + `"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		in := dag.NewType[map[string]any]("in").WithSchema(s)
		return dag.Derive(in, func(map[string]any) []*llm.Media { return nil })
	}
	free := dag.Derive(dag.NewType[llm.Media]("picture"), func(m llm.Media) []*llm.Media { return []*llm.Media{&m} })
	unknown := dag.Derive(dag.Nothing, func(struct{}) []*llm.Media { return nil })
	for _, tt := range []struct {
		name   string
		media  dag.Reader[[]*llm.Media]
		can    []string
		misfit bool // with the protocol, which takes no sound
		unfit  bool // according to the model table
	}{
		{"none", nil, []string{"tools"}, false, false},
		{"a picture", marked("image/png"), []string{"images"}, false, false},
		{"a picture, but the model reads none", marked("image/*"), []string{"audio", "files"}, false, true},
		{"a sound", marked("audio/*"), []string{"audio"}, true, false},
		{"a sound, and the model reads none either", marked("audio/wav"), []string{"images"}, true, true},
		{"anything", free, []string{"files"}, false, false},
		{"anything, but the model reads nothing", free, []string{"tools"}, false, true},
		{"any type of node", unknown, []string{"audio"}, false, false},
		{"any type of node, but the model reads nothing", unknown, []string{}, false, true},
		{"a type of no known kind", marked("x/*"), []string{}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			see := agent.New("see", note, deaf{model()}, agent.Config{User: agent.Say("What is it?"), Media: tt.media})
			var found []string
			for _, f := range stone.Validate(see, stone.Given{}) {
				if f.Type == "bad-option" && f.Path == "see" && strings.Contains(f.Message, "only pictures: use a model whose protocol accepts it") {
					found = append(found, f.Message)
				}
			}
			if (len(found) == 1) != tt.misfit {
				t.Errorf("found %q", found)
			}
			ctx := llm.WithTable(t.Context(), func(llm.Info) llm.Spec { return llm.Spec{Can: tt.can} })
			d := see.Detail()
			if err := d.Unfit(ctx); errors.As(err, new(*llm.UnfitError)) != tt.unfit || err != nil && !strings.HasPrefix(err.Error(), "Media: ") {
				t.Errorf("by the table: %v", err)
			}
			if err := d.Unfit(t.Context()); err != nil {
				t.Errorf("without a table: %v", err)
			}
		})
	}
}
