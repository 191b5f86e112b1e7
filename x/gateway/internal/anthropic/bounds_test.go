package anthropic

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// A body of 8 MiB takes neither minutes nor a gigabyte, whatever it has.
func TestBounds(t *testing.T) {
	const room = 8 << 20
	many := func(element string) string {
		return "[" + strings.Repeat(element+",", room/(len(element)+1)-100) + element + "]"
	}
	nested := func(before, after string, depth int) string {
		return strings.Repeat(before, depth) + `"granite"` + strings.Repeat(after, depth)
	}
	user := func(content string) string { return `"messages":[{"role":"user","content":` + content + `}]` }
	const hello = `"messages":[{"role":"user","content":"x"}]`
	document := func(depth int) string {
		return nested(`[{"type":"document","source":{"type":"content","content":`, `}}]`, depth)
	}
	for name, tt := range map[string]struct{ body, wrong string }{
		"blocks":             {user(many(`{}`)), "messages.0.content cannot be read: want a list of at most 100000"},
		"system":             {hello + `,"system":` + many(`{}`), "system cannot be read: want a list of at most 100000"},
		"messages":           {`"messages":` + many(`{}`), `the parameter "messages" cannot be read: want a list of at most 100000`},
		"tools":              {hello + `,"tools":` + many(`{}`), `the parameter "tools" cannot be read: want a list of at most 100000`},
		"no list":            {user(`{}`), "messages.0.content cannot be read: want a list"},
		"results":            {user(nested(`[{"type":"tool_result","tool_use_id":"1","content":`, `}]`, 2000)), `messages.0.content.0.content.0: blocks of the type "tool_result" are not supported`},
		"documents":          {user(document(2000)), `messages.0.content.0.source.content.0: sources of the type "content" are not supported`},
		"document":           {user(document(1)), ""},
		"document of result": {user(`[{"type":"tool_result","tool_use_id":"1","content":` + document(1) + `}]`), ""},
		"unused":             {user(`[{"type":"text","text":"x","content":` + document(2000) + `}]`), ""},
		"null":               {hello + `,"system":null,"tools":null`, ""},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a, err := read(httptest.NewRequest("POST", "/v1/messages", strings.NewReader(`{"model":"m",`+tt.body+`}`)), &slow{})
		runtime.ReadMemStats(&after)
		switch {
		case tt.wrong == "" && (err != nil || len(a.Messages) != 1):
			t.Errorf("%s: %v, %v", name, a.Messages, err)
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s: %.300v, want %s", name, err, tt.wrong)
		}
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 256 {
			t.Errorf("%s: %d MiB", name, got)
		}
	}
}
