package rules

import (
	"regexp"
	"strconv"
	"strings"
)

// A wording is a server's phrasing of a message.
type wording struct{ pattern, source string }

// tooLong lists how servers word the rejection of a request that is longer than the model's window.
var tooLong = alternatives([]wording{
	{`context_length_exceeded|exceed_context_size|context_window_exceeded`, "OpenAI and compatible servers, llama.cpp, Z.ai, error codes, 2026-11"},
	{`(maximum|max|model's|available|the) (model |allowed )?(context|prompt|input) (length|size|window)`, "OpenAI, vLLM, SGLang, OpenRouter, DeepSeek, xAI, Moonshot, reports, 2026-11"},
	{`context (limit|window exceeds|length exceeded|size has been exceeded)|maximum model length|model token limit`, "OpenAI, Moonshot, LM Studio, reports, 2026-11"},
	{`(prompt|input|request) (is )?too (long|large)`, "Anthropic, Amazon Bedrock, reports, 2026-11"},
	{`input token count.*exceeds|maximum number of (input )?tokens allowed`, "Google, report, 2026-11"},
	{`too large for model with|reduce the length of the (messages|input|prompt)|max_new_tokens. must be <=`, "Mistral, Groq, Together, reports, 2026-11"},
	{`prompt token count.*exceeds the limit|model_max_prompt_tokens_exceeded`, "GitHub Copilot, report, 2026-11"},
	{`tokens_limit_reached|request body too large for .* model`, "GitHub Models, report, 2026-11"},
	{`range of input length should be`, "DashScope, report, 2026-11"},
	{`exceed max message tokens`, "Doubao, report, 2026-11"},
	{`input token count is \d+ but model only supports`, "Vertex AI, report, 2026-11"},
	{`number of tokens in the prompt cannot exceed`, "Cohere, report, 2026-11"},
	{`exceed(s|ed)? (this |the )?(model'?s? )?context window`, "llama-cpp-python, Cloudflare, reports, 2026-11"},
	{`prompt tokens? (\(\d+\) )?exceeds?|prompt has \d+ tokens, but`, "MiniMax, Ollama, reports, 2026-11"},
	{`input (tokens )?exceeds the (maximum|limit)|exceeds (the )?maximum (allowed )?(input|prompt) (length|tokens)`, "Amazon Bedrock, NVIDIA NIM, reports, 2026-11"},
})

// tooOften lists how servers word a rate limit error, which may also mention tokens and lengths.
var tooOften = alternatives([]wording{
	{`rate.?limit|throttl|per (minute|day)|quota|try again later`, "OpenAI, Groq, Amazon, Google, reports, 2026-11"},
	{`tokens per min|too many tokens, please wait|\((TPM|RPM|TPD)\)`, "OpenAI, Amazon Bedrock, reports, 2026-11"},
})

// answers lists how servers word the rejection of an answer limit. Each wording states the limit that the server accepts ("most";
// "below" is one more), or the window and the input from which this limit follows.
var answers = patterns([]wording{
	{`supports at most (?P<most>\d+) completion tokens`, "OpenAI, report, 2026-11"},
	{`max_tokens: \d+ > (?P<most>\d+)`, "Anthropic, report, 2026-11"},
	{`range of .?max_(completion_)?tokens.? (is|should be) \[\d+, ?(?P<most>\d+)\]`, "DeepSeek, DashScope, reports, 2026-11"},
	{"max_(completion_)?tokens`? must be less than or equal to `?(?P<most>\\d+)", "Groq, report, 2026-11"},
	{`supported range is from 1 \(inclusive\) to (?P<below>\d+) \(exclusive\)`, "Google, report, 2026-11"},
	{`maximum tokens you requested exceeds the model limit of (?P<most>\d+)`, "Amazon Bedrock, report, 2026-11"},
	{`can only afford (?P<most>\d+)`, "OpenRouter, status 402, report, 2026-11"},
	{`max(imum)?[ _](output|completion|new)[ _]tokens[^.]{0,40}(at most|maximum of|less than or equal to|limit of|exceeds?) .?(?P<most>\d+)`, "Fireworks, Cohere, NVIDIA NIM, reports, 2026-11"},
	{`context length is (?P<window>\d+) tokens\. However, you requested \d+ tokens \((?P<input>\d+) in the messages`, "OpenAI, vLLM, DeepSeek, reports, 2026-11"},
	{`context length is (?P<window>\d+) tokens and your request has (?P<input>\d+) input tokens`, "vLLM, report, 2026-11"},
	{"exceed context limit: (?P<input>\\d+) \\+ \\d+ > (?P<window>\\d+)", "Anthropic, report, 2026-11"},
	{`context length of (?P<window>\d+) tokens\. You requested a total of \d+ tokens: (?P<input>\d+) tokens from the input`, "SGLang, report, 2026-11"},
	{"must be <= (?P<window>\\d+)\\. Given: (?P<input>\\d+) .?inputs.? tokens", "Hugging Face TGI, Together, reports, 2026-11"},
})

func alternatives(list []wording) *regexp.Regexp {
	all := make([]string, len(list))
	for i, w := range list {
		all[i] = w.pattern
	}
	return regexp.MustCompile(`(?i)` + strings.Join(all, "|"))
}

func patterns(list []wording) (all []*regexp.Regexp) {
	for _, w := range list {
		all = append(all, regexp.MustCompile(`(?i)`+w.pattern))
	}
	return all
}

// TooLong reports whether a rejection says that the request is longer than the model's window. An answer limit that is too large
// for a short request is a different fault; see AnswerLimit.
func TooLong(said string) bool {
	if !tooLong.MatchString(said) || tooOften.MatchString(said) {
		return false
	}
	_, _, answer := AnswerLimit(said)
	return !answer
}

// AnswerLimit reports whether a rejection says that the answer limit is too high, and returns the limit that the server accepts.
// If any is true, this limit holds for all requests rather than only for the rejected one.
func AnswerLimit(said string) (most int, any, refused bool) {
	for _, p := range answers {
		found := p.FindStringSubmatch(said)
		if found == nil {
			continue
		}
		number := map[string]int{}
		for i, name := range p.SubexpNames() {
			number[name], _ = strconv.Atoi(found[i]) // "" and numbers that are too large become 0
		}
		if window := number["window"]; window > 0 {
			return window - number["input"], false, number["input"] <= window/4*3
		}
		most = number["most"] + max(number["below"]-1, 0)
		return most, true, most > 0
	}
	return 0, false, false
}
