package openai

import (
	"encoding/json"
	"slices"
	"strings"
)

// Use describes how a request parameter is handled.
type Use string

const (
	// Used parameters are passed to the model.
	Used Use = "used"
	// Passed parameters are passed to models whose input is an llm.Request. Other pipelines have their own settings and ignore
	// these parameters.
	Passed Use = "passed"
	// Tooled parameters are accepted only by models whose input is an llm.Request; other models refuse them.
	Tooled Use = "tools"
	// Ignored parameters have no effect here. No program can rely on the effect that they have at OpenAI.
	Ignored Use = "ignored"
	// Refused parameters request a feature that no model here has. Values that do not request the feature are accepted; see
	// Unset.
	Refused Use = "refused"
)

// Parameter says how each of the two protocols handles a request parameter.
type Parameter struct {
	Name            string
	Responses, Chat Use // empty if the protocol has no such parameter
	Note            string
}

// Parameters lists the parameters of both protocols.
var Parameters = []Parameter{
	{"audio", "", Refused, ""},
	{"background", Used, "", "the reply comes at once; GET and cancel address the run"},
	{"client_metadata", Ignored, "", "of Codex"},
	{"context_management", Refused, "", ""},
	{"conversation", Refused, "", "send the conversation as input"},
	{"frequency_penalty", Ignored, Ignored, ""},
	{"function_call", "", Refused, "use tool_choice"},
	{"functions", "", Refused, "use tools"},
	{"include", Used, "", "`reasoning.encrypted_content`; others are ignored"},
	{"input", Used, "", ""},
	{"instructions", Used, "", "the system message"},
	{"logit_bias", "", Refused, ""},
	{"logprobs", "", Refused, ""},
	{"max_completion_tokens", "", Passed, ""},
	{"max_output_tokens", Passed, "", ""},
	{"max_tokens", "", Passed, ""},
	{"max_tool_calls", Ignored, "", "it bounds tools of OpenAI's servers"},
	{"messages", "", Used, ""},
	{"metadata", Used, Used, "labels of the run"},
	{"modalities", "", Ignored, "the answer is text"},
	{"model", Used, Used, ""},
	{"moderation", Ignored, Ignored, ""},
	{"n", "", Refused, ""},
	{"parallel_tool_calls", Passed, Passed, ""},
	{"prediction", "", Ignored, ""},
	{"presence_penalty", Ignored, Ignored, ""},
	{"previous_response_id", Used, "", "of a model that is given a conversation"},
	{"prompt", Refused, "", "prompts are part of the pipeline"},
	{"prompt_cache_key", Ignored, Ignored, ""},
	{"prompt_cache_options", Ignored, Ignored, ""},
	{"prompt_cache_retention", Ignored, Ignored, ""},
	{"reasoning", Passed, "", "its effort"},
	{"reasoning_effort", "", Passed, ""},
	{"response_format", "", Tooled, "its schema is a check"},
	{"safety_identifier", Ignored, Ignored, ""},
	{"seed", "", Passed, ""},
	{"service_tier", Ignored, Ignored, ""},
	{"stop", "", Passed, ""},
	{"store", Used, Ignored, "false hides the response; the run stays in the journal"},
	{"stream", Used, Used, "what the gate has accepted, unless `:serve :live` names the model"},
	{"stream_options", Ignored, Used, "include_usage"},
	{"temperature", Passed, Passed, ""},
	{"text", Tooled, "", "the schema of its format is a check; the verbosity is ignored"},
	{"tool_choice", Passed, Passed, ""},
	{"tools", Tooled, Tooled, "functions, custom tools and namespaces of them; others are refused, unless `:serve :ignore-tools` names their type"},
	{"top_logprobs", Refused, Refused, ""},
	{"top_p", Passed, Passed, ""},
	{"truncation", Ignored, "", ""},
	{"user", Ignored, Ignored, ""},
	{"verbosity", "", Ignored, ""},
	{"web_search_options", "", Refused, ""},
}

// checkParameters returns an error if a request has parameters that the table does not allow.
func checkParameters(body map[string]json.RawMessage, use func(Parameter) Use) error {
	for name, value := range body {
		i, known := slices.BinarySearchFunc(Parameters, name, func(p Parameter, name string) int { return strings.Compare(p.Name, name) })
		if !known || use(Parameters[i]) == "" {
			return Wrong(name, "unknown_parameter", "unknown parameter %q: see docs/reference/gateway.md for those that are known", name)
		}
		if p := Parameters[i]; use(p) == Refused && !Unset(value) {
			note := "leave it out"
			if p.Note != "" {
				note = p.Note
			}
			return Wrong(name, "unsupported_parameter", "the parameter %q is not supported: %s", name, note)
		}
	}
	return nil
}

// Unset reports whether the value of a parameter requests nothing: null, false, 0, an empty value, or 1, which as the value of n
// requests a single answer.
func Unset(value json.RawMessage) bool {
	switch strings.TrimSpace(string(value)) {
	case "null", "false", "0", "1", `""`, "[]", "{}":
		return true
	}
	return false
}
