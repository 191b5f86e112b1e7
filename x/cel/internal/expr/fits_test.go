package expr_test

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/x/cel/internal/expr"
)

func TestFits(t *testing.T) {
	type order struct {
		Text  string            `json:"text"`
		Count int               `json:"count"`
		Items []struct{ Q int } `json:"items"`
		Extra map[string]any    `json:"extra"`
		Any   any               `json:"any"`
	}
	of, err := schema.For[order]()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"size(call.input.text) < 9 && call.input.count > 0":              "",
		"call.input.items.all(i, i.Q > 0 && call.input.count < i.Q)":     "",
		"call.input.items.map(i, {'q': i.Q}).all(j, j.whatever == 1)":    "",
		"call.input.count == 2.0 && call.input.count > 1.5":              "",
		"call.input.count != 2.0 || call.input.count in [1.0]":           "",
		"(call.intent == 'x' ? call.input.count : 1.5) > 0":              "",
		"call.input.count + 0.5 > 1.0":                                   "1:18: found no matching overload", // as when it runs
		"call.input.items.all(i, i.q > 0)":                               "1:26: i has no field q, did you mean Q?",
		"call.input.items[0].q > 0":                                      "1:20: call.input.items[…] has no field q, did you mean Q?",
		"call.input.items[size(call.input.txt)].Q > 0":                   "1:33: call.input has no field txt, did you mean text?",
		"call.input.items.exists(i, i.Q.startsWith('a'))":                "found no matching overload",
		"call.input.items.all(call, call.input.nothing > 0)":             "1:32: call has no field input", // another call
		"[{'input': {}}].map(call, call.input.nothing).size() == 0":      "",
		"has(call.input.txt) && call.context.x == 1":                     "",
		"call.input.extra.whatever == 1 && call.input.any.x.y.z == 'a'":  "",
		"call.intent == 'x' && call.input.text.matches('[a-z]+')":        "",
		"out.text == 'x' && has(out.more)":                               "",
		"call.input.txt == 'x'":                                          "1:11: call.input has no field txt, did you mean text?",
		"call.input.text.length == 3":                                    "1:16: call.input.text has no field length",
		"true || out.sum > 3":                                            "1:12: out has no field sum",
		"call.input.items.exists(i, i.Q > 0 && call.input.tex == 'x')":   "1:49: call.input has no field tex, did you mean text?",
		"call.input.text > 3":                                            "1:17: found no matching overload",
		"call.input.count.startsWith('x')":                               "1:28: found no matching overload",
		"call.input.text":                                                "1:1: must be true or false, is string",
		"has(call.input.text.x) || has(call.input.txt.y)":                "1:41: call.input has no field txt",
		"has(call.input.text) ? call.input.text == 'a' : out.count == 3": "",
	} {
		p, err := expr.Compile(text, []string{"call", "out"}, expr.Bool)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		err = p.Fits(map[string]*schema.Schema{"call.input": of, "out": of})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err := p.Fits(map[string]*schema.Schema{"call.input": nil}); err != nil {
			t.Errorf("%s: without a schema: %v", text, err)
		}
	}
}
