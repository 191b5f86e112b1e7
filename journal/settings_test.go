package journal

import (
	"strings"
	"testing"
)

// A refusal says what differs, tools by their names.
func TestChangedSettings(t *testing.T) {
	const agent = `{"model":{"Model":"m"},"use":[{"name":"restart","tool":{"name":"restart","description":"Restarts a service.","schema":{"type":"object"}}}],"max-turns":8}`
	long := strings.Repeat("word ", 40)
	for _, test := range []struct{ was, is, want string }{
		{agent, agent, ""},
		{agent, strings.Replace(agent, "a service.", "a service, gently.", 1), "tool restart: description «Restarts a service.» → «Restarts a service, gently.»"},
		{agent, strings.Replace(agent, `"max-turns":8`, `"max-turns":9`, 1), "max-turns 8 → 9"},
		{agent, strings.Replace(agent, `"Model":"m"`, `"Model":"n"`, 1), "model.Model «m» → «n»"},
		{agent, strings.Replace(agent, `"object"`, `["object"]`, 1), `tool restart: schema.type «object» → ["object"]`},
		{agent, `{"model":{"Model":"m"},"max-turns":8}`, `tool [{"name":"restart","tool":{"description":"Restarts a service.","name":"restart",… → none`},
		{`{"done":"` + long + `a"}`, `{"done":"` + long + `b"}`, "done …word word word word a» → …word word word word b»"},
		{"", agent, ""},
		{"3f", agent, ""},
	} {
		got := strings.Join(changedSettings(settingsOf([]byte(test.was)), settingsOf([]byte(test.is))), "; ")
		if got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}
