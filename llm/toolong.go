package llm

import (
	"errors"
	"regexp"
)

// TooLong reports whether err is a provider's refusal of a request that is longer than the model's window.
// No two servers say it alike: a code where there is one, else the words that they are known to use. A
// request that is refused because of its rate is never too long.
func TooLong(err error) bool {
	var said string
	if e, ok := errors.AsType[*HTTPError](err); ok {
		switch e.Status {
		case 400, 413, 422, 500: // LM Studio and Ollama answer 500
			said = e.Body
		}
	} else if e, ok := errors.AsType[*ProviderError](err); ok {
		said = e.Type + " " + e.Code + " " + e.Message
	}
	return tooLong.MatchString(said) && !tooOften.MatchString(said)
}

var (
	tooLong = regexp.MustCompile(`(?i)` +
		// codes and types: OpenAI and its compatibles; llama.cpp; Z.AI
		`context_length_exceeded|exceed_context_size|context_window_exceeded` +
		// OpenAI, vLLM, SGLang, OpenRouter, DeepSeek, xAI, Moonshot: the model's limit by its names
		`|(maximum|max|model's|available|the) (model |allowed )?(context|prompt|input) (length|size|window)` +
		`|context (limit|window exceeds|length exceeded|size has been exceeded)|maximum model length|model token limit` +
		// Anthropic, Amazon, Google, Mistral, Groq, Together: the request by its length
		`|(prompt|input|request) (is )?too (long|large)|input token count.*exceeds|maximum number of (input )?tokens allowed` +
		`|too large for model with|reduce the length of the (messages|input|prompt)|max_new_tokens. must be <=`)
	tooOften = regexp.MustCompile(`(?i)rate.?limit|throttl|per (minute|day)|quota|try again later`)
)
