// Package rules lists the known messages, requirements and limits of providers. The package consists of data: to add a wording,
// add a row. Each row names its source and the month in which it was read. "Report" means an error text quoted in a public issue,
// where the provider has no page about it.
package rules

import (
	"regexp"
	"strings"
)

// The protocols.
const (
	Chat      = "chat-completions"
	Responses = "responses"
	Messages  = "messages"
	Gemini    = "gemini"
)

// An Ending is the meaning of an answer's stop reason.
type Ending uint8

// The endings.
const (
	Cut     Ending = iota // the answer was ended by a limit or for an unknown reason
	Whole                 // the model has finished
	Paused                // the provider continues if it receives the same messages again
	Refused               // the model or a filter refused to answer
	Failed                // the provider could not complete the answer
	Retry                 // the answer failed, but may succeed next time
)

// endings maps the known stop reasons, in lower case, to their meanings. The protocols do not contradict each other.
var endings = map[string]Ending{}

func init() {
	for _, r := range reasons {
		for _, name := range strings.Fields(r.names) {
			endings[strings.ToLower(name)] = r.ending
		}
	}
}

var reasons = []struct {
	protocol, names string
	ending          Ending
	source          string
}{
	{Chat, "stop tool_calls function_call", Whole, "OpenAI, API reference, chat completion object, 2026-11"},
	{Chat, "eos eos_token stop_sequence", Whole, "Together, Hugging Face TGI, API references, 2026-11"},
	{Chat, "complete tool_call end", Whole, "report: Cohere and proxies before other models, 2026-11"},
	{Chat, "length", Cut, "OpenAI, API reference, chat completion object, 2026-11"},
	{Chat, "model_length", Cut, "Mistral, API reference, chat completion, 2026-11"},
	{Chat, "content_filter", Refused, "OpenAI, API reference, chat completion object, 2026-11"},
	{Chat, "sensitive", Refused, "Z.ai, API reference, chat completion, 2026-11"},
	{Chat, "insufficient_system_resource", Retry, "DeepSeek, API reference, create chat completion, 2026-11"},
	{Chat, "network_error", Retry, "Z.ai, API reference, chat completion, 2026-11"},
	{Chat, "error abort", Retry, "vLLM, engine protocol; Mistral, API reference, 2026-11"},
	{Responses, "completed", Whole, "OpenAI, API reference, response object, 2026-11"},
	{Responses, "max_output_tokens", Cut, "OpenAI, API reference, response object, 2026-11"},
	{Messages, "end_turn tool_use stop_sequence", Whole, "Anthropic, guide \"Handling stop reasons\", 2026-11"},
	{Messages, "max_tokens model_context_window_exceeded", Cut, "Anthropic, guide \"Handling stop reasons\", 2026-11"},
	{Messages, "pause_turn", Paused, "Anthropic, guide \"Handling stop reasons\", 2026-11"},
	{Messages, "refusal", Refused, "Anthropic, guide \"Handling stop reasons\", 2026-11"},
	{Messages, "guardrail_intervened content_filtered", Refused, "Amazon Bedrock, API reference, Converse, 2026-11"},
	{Gemini, "STOP", Whole, "Gemini API reference, FinishReason, 2026-11"},
	{Gemini, "MAX_TOKENS", Cut, "Gemini API reference, FinishReason, 2026-11"},
	{Gemini, "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR", Refused, "Gemini and Vertex AI API references, FinishReason, 2026-11"},
	{Gemini, "IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION", Refused, "Gemini API reference, FinishReason, 2026-11"},
	{Gemini, "MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE", Retry, "Gemini API reference, FinishReason, 2026-11"},
	{Gemini, "UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MISSING_THOUGHT_SIGNATURE LANGUAGE NO_IMAGE IMAGE_OTHER OTHER", Failed, "Gemini API reference, FinishReason, 2026-11"},
}

// EndingOf returns the meaning of a stop reason. If there is none, the answer is complete when its stream ends.
func EndingOf(reason string) Ending {
	if reason == "" {
		return Whole
	}
	return endings[strings.ToLower(reason)]
}

// A Naming describes which tool call IDs and tool names a server accepts.
type Naming struct {
	ID, Name *regexp.Regexp
	MaxName  int
	OneModel bool // whether signatures are valid only for the model that made them
}

var namings = []struct {
	protocol, host string // an empty host means any other host
	id, name       string
	maxName        int
	oneModel       bool
	source         string
}{
	{Chat, "api.mistral.ai", `^[a-zA-Z0-9]{9}$`, `^[a-zA-Z0-9_-]{1,64}$`, 64, false, "report: \"Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9\", 2026-11"},
	{Chat, "", `^.{1,40}$`, `^[a-zA-Z0-9_-]{1,64}$`, 64, false, "report: \"tool_calls[0].id: string too long. Expected a string with maximum length 40\"; OpenAI, API reference, function object, 2026-11"},
	{Responses, "", `^.{1,64}$`, `^[a-zA-Z0-9_-]{1,64}$`, 64, false, "report: \"input[2].call_id: string too long. Expected a string with maximum length 64\"; OpenAI, API reference, 2026-11"},
	{Messages, "", `^[a-zA-Z0-9_-]{1,64}$`, `^[a-zA-Z0-9_-]{1,64}$`, 64, true, "report: \"tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'\"; \"Invalid `signature` in `thinking` block\" after a change of the model; Anthropic, guide \"Define tools\", 2026-11"},
	{Gemini, "", `^.{1,64}$`, `^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`, 64, false, "report: \"Invalid function name. Must start with a letter or an underscore\"; Gemini API reference, FunctionDeclaration, 2026-11"},
}

var namingOf = map[[2]string]*Naming{}

func init() {
	for _, r := range namings {
		namingOf[[2]string{r.protocol, r.host}] = &Naming{regexp.MustCompile(r.id), regexp.MustCompile(r.name), r.maxName, r.oneModel}
	}
}

// NamingOf returns the Naming of a server, or nil for an unknown protocol.
func NamingOf(protocol, host string) *Naming {
	if n := namingOf[[2]string{protocol, host}]; n != nil {
		return n
	}
	return namingOf[[2]string{protocol, ""}]
}

// Named returns an acceptable name that is as close as possible to a name which the server rejects.
func (n *Naming) Named(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if plain = plain[:min(len(plain), n.MaxName)]; n.Name.MatchString(plain) {
		return plain
	}
	return "_" + plain[:min(len(plain), n.MaxName-1)]
}

// A Picture describes which pictures a protocol accepts.
type Picture struct {
	MaxBytes int // the maximum size in base64, in bytes
	MaxSide  int // the maximum width and height, in pixels
	Types    []string
	Source   string
}

// Pictures maps protocols to their rules. Zero means that the protocol has no limit of its own.
var Pictures = map[string]Picture{
	Chat:      {0, 0, []string{"image/png", "image/jpeg", "image/gif", "image/webp"}, "OpenAI, guide \"Images and vision\", 2026-11"},
	Responses: {0, 0, []string{"image/png", "image/jpeg", "image/gif", "image/webp"}, "OpenAI, guide \"Images and vision\", 2026-11"},
	Messages:  {5 << 20, 8000, []string{"image/jpeg", "image/png", "image/gif", "image/webp"}, "Anthropic, guide \"Vision\"; report: \"image.source.base64: image exceeds 5 MB maximum: 5272940 bytes > 5242880 bytes\", 2026-11"},
	Gemini:    {0, 0, []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}, "Google, guide \"Image understanding\", 2026-11"},
}

// otherField lists the wordings with which a server rejects one name for the answer limit but accepts the other name.
var otherField = alternatives([]wording{
	{`'?max_(completion_)?tokens'? is not supported with this model`, "OpenAI and proxies before it, report, 2026-11"},
	{`extra_forbidden.{0,60}max_(completion_)?tokens`, "vLLM, Mistral, report, 2026-11"},
	{`(unknown|unrecognized|unsupported) (parameter|field|argument)[^.]{0,20}max_(completion_)?tokens`, "compatible servers, reports, 2026-11"},
})

// OtherField reports whether a server rejects the name used for the answer limit, max_tokens or max_completion_tokens, but
// accepts the other.
func OtherField(said string) bool { return otherField.MatchString(said) }
