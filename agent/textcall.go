package agent

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/stonelayer/stone/llm"
)

// textCalls are the forms in which models write a call at the end of a text. This happens if the server does not parse the call,
// because it does not support tools for the model or because the form is slightly wrong. The group matches the name of the tool.
var textCalls = []*regexp.Regexp{
	regexp.MustCompile(`(?s)<tool_calls?>\s*\[?\s*\{[^<]*?"name"\s*:\s*"([^"]+)".*(\}|</tool_calls?>)\s*$`),                 // Hermes, Qwen
	regexp.MustCompile(`(?s)<function=([\w.:/-]+)>.*(</function>|\})\s*(</tool_call>)?\s*$`),                                // Llama, Qwen Coder
	regexp.MustCompile(`(?s)<(?:\w+:)?invoke name="([^"]+)">.*</(?:\w+:)?invoke>\s*(</[\w:]+>)?\s*$`),                       // Claude, MiniMax, DeepSeek
	regexp.MustCompile(`(?s)\[TOOL_CALLS\]\s*(?:\[?\s*\{[^{]*?"name"\s*:\s*"([^"]+)"|([\w.:/-]+)\s*(?:\[ARGS\])?\s*\{).*$`), // Mistral
	regexp.MustCompile(`(?s)<\|(?:python_tag|tool_call_begin)\|>\s*(?:functions\.)?(?:([\w-]+)(?::\d+)?\b|\{[^{]*?"name"\s*:\s*"([^"]+)").*$`),
}

// textCall returns the name of an offered tool if the text consists of, or ends with, a call of that tool. Otherwise, it returns
// "". If more text follows a call, the model is only talking about calls.
func textCall(reply *llm.Reply, tools []Tool) string {
	offered := func(name string) bool {
		return slices.ContainsFunc(tools, func(t Tool) bool { return t.Name == name })
	}
	text := strings.TrimSpace(reply.Text)
	if len(tools) == 0 || len(reply.ToolCalls) > 0 || text == "" {
		return ""
	}
	for _, form := range textCalls {
		if at := slices.IndexFunc(form.FindStringSubmatch(text), offered); at >= 0 {
			return form.FindStringSubmatch(text)[at]
		}
	}
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		_, inner, _ = strings.Cut(inner, "\n")
		text = strings.TrimSuffix(strings.TrimSpace(inner), "```")
	}
	var call struct {
		Name                  string
		Arguments, Parameters json.RawMessage
	}
	if json.Unmarshal([]byte(text), &call) == nil && call.Arguments == nil != (call.Parameters == nil) && offered(call.Name) {
		return call.Name
	}
	return ""
}
