package server

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/serve/api"
)

// Arguments have names that models of all providers take, and the run gets the names of its inputs.
func TestRename(t *testing.T) {
	long := strings.Repeat("x", 70)
	_, p, err := toolOf(api.Pipeline{Name: "plan", Input: json.RawMessage(`{"type":"object","properties":{"user/tone":{"type":"string"},"user_tone":{"type":"integer"},"tönung":{"$ref":"#/properties/user~1tone"},"` + long + `":{"type":"array","items":{"$ref":"#/properties/user~1tone/x"}},"b.c-d":{}},"required":["user/tone","b.c-d"],"additionalProperties":false}`)})
	if err != nil {
		t.Fatal(err)
	}
	tool, _, _ := toolOf(p.Pipeline)
	const want = `{"additionalProperties":false,"properties":{"b.c-d":{},"t_nung":{"$ref":"#/properties/user_tone_2"},"user_tone":{"type":"integer"},"user_tone_2":{"type":"string"},"XXX":{"items":{"$ref":"#/properties/user_tone_2/x"},"type":"array"}},"required":["user_tone_2","b.c-d"],"type":"object"}`
	var got, wanted any
	if err := json.Unmarshal(tool.InputSchema.(json.RawMessage), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(want, "XXX", long[:60])), &wanted); err != nil {
		t.Fatal(err)
	}
	if a, b := string(encode(got)), string(encode(wanted)); a != b {
		t.Errorf("got  %s\nwant %s", a, b)
	}
	input, err := p.input(json.RawMessage(`{"user_tone_2":"warm","user_tone":1,"t_nung":"x","b.c-d":9007199254740993}`))
	if want := `{"b.c-d":9007199254740993,"tönung":"x","user/tone":"warm","user_tone":1}`; err != nil || string(input) != want {
		t.Errorf("got %s, %v, want %s", input, err, want)
	}
}

// An approval is a choice and, beside it, a reason.
func TestReason(t *testing.T) {
	q := api.Question{Name: "order", Choices: []string{"yes", "no", "no: …", "always", "never"}}
	const want = `{"type":"object","properties":{"answer":{"enum":["yes","no","always","never"],"title":"order","type":"string"},"reason":{"description":"Why, if the answer is no. It may be empty.","title":"Reason","type":"string"}},"required":["answer"]}`
	if got := string(requested(q)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, c := range []struct{ answer, reason, want string }{
		{"yes", "", "yes"}, {"no", "", "no"}, {"no", " not today ", "no: not today"}, {"yes", "why not", "yes"}, {"no", " ", "no"}, {"never", "", "never"},
	} {
		got, decided, err := response(q, &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": c.answer, "reason": c.reason}})
		if got != c.want || !decided || err != nil {
			t.Errorf("%q with %q: %q, %t, %v", c.answer, c.reason, got, decided, err)
		}
	}
	free := api.Question{Name: "pick", Choices: []string{"none", "other: …"}}
	if got := string(requested(free)); strings.Contains(got, "reason") || !strings.Contains(got, "One of: none, other: …") {
		t.Errorf("got %s", got)
	}
}
