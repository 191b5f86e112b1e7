package fix

import (
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/llm"
)

// fixtures are the script of this example for the peer @copilotkit/aimock.
const fixtures = `{"fixtures": [
	{"match": {"userMessage": "go test says", "turnIndex": 0}, "response": {"toolCalls": [{"id": "c1", "name": "read_file", "arguments": {"path": "stats.go"}}]}},
	{"match": {"userMessage": "want 2", "turnIndex": 1}, "response": {"toolCalls": [{"id": "c2", "name": "edit_file", "arguments":
		{"path": "stats.go", "old_string": "len(values)+1", "new_string": "len(values)"}}]}},
	{"match": {"userMessage": "go test says", "turnIndex": 1}, "response": {"toolCalls": [{"id": "c3", "name": "edit_file", "arguments":
		{"path": "stats.go", "old_string": "\tsum := 0.0\n", "new_string": "\tif len(values) == 0 {\n\t\treturn 0\n\t}\n\tsum := 0.0\n"}}]}},
	{"match": {"userMessage": "go test says", "turnIndex": 2}, "response": {"content": "The divisor was wrong."}},
	{"match": {"userMessage": "was repaired"}, "response": {"content": "Mean is right again."}}
]}`

// TestPeer repairs the sample with a server that the environment names, in both
// protocols.
func TestPeer(t *testing.T) {
	need.Time(t)
	url := peer.Aimock(t, fixtures)
	for name, env := range map[string]map[string]string{
		openaiModel:    {"OPENAI_BASE_URL": url},
		anthropicModel: {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "test-key"},
	} {
		t.Run(name, func(t *testing.T) {
			noKeys(t)
			for key, value := range env {
				t.Setenv(key, value)
			}
			if m, err := chooseModel("", true); err != nil || m.(llm.Informer).Info().Model != name {
				t.Errorf("the model is %v, %v; want %s", m, err, name)
			}
			res, err := run(t, nil)
			if err != nil || res.Node.Text() != "Mean is right again." {
				t.Errorf("%q, %v", res.Node.Text(), err)
			}
		})
	}
}
