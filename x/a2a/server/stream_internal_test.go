package server

import (
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/internal/turn"
)

// A draft has what is said beyond what was told, and nothing for a text that has only begun.
func TestDraft(t *testing.T) {
	var d draft
	for _, c := range []struct{ text, told string }{{"", ""}, {"Hel", "Hel"}, {"Hello", "+lo"}, {"Hello", ""}, {"", ""}, {"", ""}, {"New", "New"}} {
		told := ""
		if e, ok := d.add([]turn.Part{{Kind: turn.Text, Text: c.text}}).(*sdk.TaskArtifactUpdateEvent); ok {
			if told = e.Artifact.Parts[0].Text(); e.Append {
				told = "+" + told
			} else if told == "" {
				told = "an empty artifact"
			}
		}
		if told != c.told {
			t.Errorf("of %q was told %q, want %q", c.text, told, c.told)
		}
	}
}
