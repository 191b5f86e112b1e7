package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/tool"
)

type lookup struct {
	City string   `json:"city" jsonschema:"name of the city"`
	Days int      `json:"days,omitempty"`
	Unit string   `json:"unit,omitempty" enum:"C,F"`
	Tags []string `json:"tags,omitempty"`
}

func TestFuncChecksInput(t *testing.T) {
	ran := false
	forecast := tool.Func("forecast", "Tells the weather.", func(_ context.Context, in lookup) (string, error) {
		ran = true
		return in.City, nil
	})
	for _, tt := range []struct{ input, want string }{
		{`{"city":"Oslo"}`, ""},
		{`{"city":"Oslo","days":3,"unit":"C","tags":["a"]}`, ""},
		{`{}`, `property "city" is required`},
		{``, `property "city" is required`},
		{`null`, `want object`},
		{`{"city":7}`, `city: want string, got integer 7`},
		{`{"city":"Oslo","days":"3","unit":"K"}`, `days: want integer, got string "3"; unit: `},
		{`{"city":"Oslo","day":3}`, `"day"`},
		{`{"city":"Oslo","days":1e30}`, `cannot unmarshal number 1e30`},
		{`{"city":"Os`, `text that ends`},
	} {
		ran = false
		got, err := forecast.Tool.Run(t.Context(), json.RawMessage(tt.input))
		if tt.want == "" {
			if err != nil || got.Text != "Oslo" {
				t.Errorf("%s: got %q, %v", tt.input, got.Text, err)
			}
			continue
		}
		wrong, ok := errors.AsType[*tool.InputError](err)
		if !ok || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got error %v, want one line with %q", tt.input, err, tt.want)
		} else if ran || wrong.Tool != "forecast" || len(wrong.Problems) == 0 {
			t.Errorf("%s: ran %v, %+v", tt.input, ran, wrong)
		}
	}
}

func TestFuncOffersClosedSchema(t *testing.T) {
	m := tool.Func("forecast", "Tells the weather.", func(context.Context, lookup) (string, error) { return "", nil },
		tool.Parallel(), tool.Effects("net"), tool.Effects("cost"), tool.Timeout(time.Minute), tool.MaxResult(100))
	want := agent.Tool{
		Tool: llm.Tool{Name: "forecast", Description: "Tells the weather.", Schema: json.RawMessage(
			`{"additionalProperties":false,"properties":{"city":{"description":"name of the city","type":"string"},` +
				`"days":{"type":"integer"},"tags":{"items":{"type":"string"},"type":["null","array"]},` +
				`"unit":{"enum":["C","F"],"type":"string"}},"required":["city"],"type":"object"}`)},
		Parallel:  true,
		Effects:   []string{"net", "cost"},
		Timeout:   time.Minute,
		MaxResult: 100,
	}
	got := *m.Tool
	got.Run = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestFuncOutput(t *testing.T) {
	type input struct{}
	boom := errors.New("boom")
	for _, tt := range []struct {
		name string
		m    agent.Middleware
		want string
		err  string
	}{
		{"text", tool.Func("t", "", func(context.Context, input) (string, error) { return "plain", nil }), "plain", ""},
		{"json", tool.Func("t", "", func(context.Context, input) (lookup, error) { return lookup{City: "Oslo"}, nil }), `{"city":"Oslo"}`, ""},
		{"result", tool.Func("t", "", func(context.Context, input) (agent.Result, error) { return agent.Result{Text: "own"}, nil }), "own", ""},
		{"map input", tool.Func("t", "", func(_ context.Context, in map[string]int) (int, error) { return len(in), nil }), "0", ""},
		{"error", tool.Func("t", "", func(context.Context, input) (string, error) { return "", boom }), "", "boom"},
		{"not JSON", tool.Func("t", "", func(context.Context, input) (func(), error) { return nil, nil }), "", "cannot be written as JSON"},
	} {
		got, err := tt.m.Tool.Run(t.Context(), json.RawMessage(`{}`))
		if got.Text != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: got %q, %v", tt.name, got.Text, err)
		}
	}
}

type family struct {
	Name     string   `json:"name"`
	Children []family `json:"children,omitempty"`
}

func TestFuncReportsMistakes(t *testing.T) {
	long := strings.Repeat("x", 65)
	for _, tt := range []struct {
		name string
		m    agent.Middleware
		want string // in Err; empty if there is none
	}{
		{"fine", tool.Func("Read-file_2", "", func(context.Context, lookup) (string, error) { return "", nil }), ""},
		{"recursive", tool.Func("plant", "", func(context.Context, family) (string, error) { return "", nil }), ""},
		{"no name", tool.Func("", "", func(context.Context, lookup) (string, error) { return "", nil }), "1 to 64"},
		{"long name", tool.Func(long, "", func(context.Context, lookup) (string, error) { return "", nil }), "1 to 64"},
		{"odd name", tool.Func("read file", "", func(context.Context, lookup) (string, error) { return "", nil }), `"read file"`},
		{"string input", tool.Func("t", "", func(context.Context, string) (string, error) { return "", nil }), "must be a struct"},
		{"any input", tool.Func("t", "", func(context.Context, any) (string, error) { return "", nil }), "must be a struct"},
		{"no schema", tool.Func("t", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil }), "chan"},
		{"nil", tool.Func[lookup, string]("t", "", nil), "nil"},
		{"nothing to confirm", tool.Confirm(agent.Middleware{Name: "compact"}, tool.Approver{}), `"compact" offers no tool`},
		{"confirmed mistake", tool.Confirm(tool.Func[lookup, string]("t", "", nil), tool.Always), "nil"},
	} {
		err := tt.m.Tool.Err
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got Err %v, want %q", tt.name, err, tt.want)
			continue
		}
		if err == nil {
			continue
		}
		if _, ran := tt.m.Tool.Run(t.Context(), json.RawMessage(`{}`)); !errors.Is(ran, err) {
			t.Errorf("%s: a call returned %v, want %v", tt.name, ran, err)
		}
	}
}

func TestConfirm(t *testing.T) {
	plain := tool.Func("wipe", "Removes all.", func(context.Context, struct{}) (string, error) { return "wiped", nil })
	wrapped := plain
	wrapped.Wrap = func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
		return next(ctx, c.Offer(*plain.Tool))
	}
	ask := func(answer bool, err error) tool.Approver {
		return tool.Approver{Approve: func(_ context.Context, call tool.Call) (tool.Decision, error) {
			if call.Tool != "wipe" || string(call.Input) != `{}` {
				t.Errorf("asked about %s %s", call.Tool, call.Input)
			}
			return tool.Decision{Allowed: answer}, err
		}}
	}
	for _, tt := range []struct {
		name    string
		approve tool.Approver
		text    string
		err     bool
	}{
		{"nobody", tool.Approver{}, "wipe did not run", false},
		{"no", ask(false, nil), "wipe did not run", false},
		{"yes", ask(true, nil), "wiped", false},
		{"always", tool.Always, "wiped", false},
		{"broken", ask(true, errors.New("no terminal")), "", true},
	} {
		// All ways to the tool: the field, and what a Wrap offers.
		c, err := tool.Confirm(wrapped, tt.approve).Wrap(t.Context(), agent.Context{},
			func(_ context.Context, c agent.Context) (agent.Context, error) { return c, nil })
		if err != nil || len(c.Tools) != 1 {
			t.Fatal(err, c.Tools)
		}
		for _, gated := range []agent.Tool{*tool.Confirm(plain, tt.approve).Tool, c.Tools[0]} {
			got, err := gated.Run(t.Context(), json.RawMessage(`{}`))
			if !strings.HasPrefix(got.Text, tt.text) || (err != nil) != tt.err {
				t.Errorf("%s: got %q, %v", tt.name, got.Text, err)
			}
			denied := agent.Recommendation{Action: agent.Loop, Source: "wipe", Reason: "approval-needed"}
			if refused := strings.Contains(got.Text, "did not run"); refused != (got.Recommend != nil) || refused && *got.Recommend != denied {
				t.Errorf("%s: recommends %+v", tt.name, got.Recommend)
			}
		}
	}
}

// TestFuncShowsMedia returns media in several ways.
func TestFuncShowsMedia(t *testing.T) {
	type pages struct {
		Title string       `json:"title"`
		Pages []*llm.Media `json:"pages"`
	}
	png := &llm.Media{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}
	for name, c := range map[string]struct {
		tool agent.Middleware
		want string
	}{
		"a pointer": {tool.Func("f", "", func(context.Context, struct{}) (*llm.Media, error) { return png, nil }), `"[media 1: image/png, 8 bytes]"`},
		"a value":   {tool.Func("f", "", func(context.Context, struct{}) (llm.Media, error) { return *png, nil }), `"[media 1: image/png, 8 bytes]"`},
		"a struct": {tool.Func("f", "", func(context.Context, struct{}) (pages, error) { return pages{"t", []*llm.Media{png}}, nil }),
			`{"pages":["[media 1: image/png, 8 bytes]"],"title":"t"}`},
		"an interface": {tool.Func("f", "", func(context.Context, struct{}) (any, error) { return png, nil }), `"[media 1: image/png, 8 bytes]"`},
	} {
		res, err := c.tool.Tool.Run(t.Context(), []byte(`{}`))
		if err != nil || res.Text != c.want || len(res.Media) != 1 || res.Media[0].Type != "image/png" {
			t.Errorf("%s: %q, %v, %v", name, res.Text, res.Media, err)
		}
	}
	empty := tool.Func("f", "", func(context.Context, struct{}) (*llm.Media, error) { return nil, nil })
	if res, err := empty.Tool.Run(t.Context(), []byte(`{}`)); err != nil || res.Text != "null" || res.Media != nil {
		t.Errorf("nil: %q, %v, %v", res.Text, res.Media, err)
	}
}
