package llm_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stonelayer/stone/llm"
)

// TestTooLong has what servers answer to a request longer than the model's window, and what must not be
// taken for it.
func TestTooLong(t *testing.T) {
	for _, test := range []struct {
		server, body string
		status       int
		want         bool
	}{
		{"OpenAI Responses", `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`, 400, true},
		{"OpenAI Chat", `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 400, true},
		{"Anthropic", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, 400, true},
		{"Anthropic with max_tokens", `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 170636 + 34048 > 200000, decrease input length or ` + "`max_tokens`" + ` and try again"}}`, 400, true},
		{"Anthropic by bytes", `{"type":"error","error":{"type":"request_too_large","message":"Request too large"}}`, 413, true},
		{"Gemini", `{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}`, 400, true},
		{"vLLM", `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).","type":"BadRequestError","code":400}`, 400, true},
		{"SGLang", `{"object":"error","message":"The input (400013 tokens) is longer than the model's context length (262144 tokens).","type":"BadRequestError","code":400}`, 400, true},
		{"llama.cpp", `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`, 400, true},
		{"LM Studio", `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length"}`, 400, true},
		{"Mistral", `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_invalid_args"}`, 400, true},
		{"Groq", `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 400, true},
		{"xAI", `{"error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}`, 400, true},
		{"Amazon", `{"message":"Input is too long for requested model."}`, 400, true},
		{"Moonshot", `{"error":{"message":"Invalid request: Your request exceeded model token limit: 131072","type":"invalid_request_error"}}`, 400, true},
		{"OpenRouter", `{"error":{"message":"Input length 131393 exceeds the maximum allowed input length of 131040 tokens.","code":400}}`, 400, true},
		{"Together", `{"error":{"message":"Input validation error: ` + "`inputs` tokens + `max_new_tokens`" + ` must be <= 4097. Given: 4000 inputs tokens and 1000 max_new_tokens"}}`, 422, true},
		{"Copilot", `{"error":{"message":"prompt token count of 74490 exceeds the limit of 72000","code":"model_max_prompt_tokens_exceeded"}}`, 400, true},
		{"GitHub Models", `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}`, 413, true},
		{"DashScope", `{"error":{"code":"invalid_parameter_error","message":"Range of input length should be [1, 98304]"}}`, 400, true},
		{"Doubao", `{"error":{"code":"InvalidParameter","message":"Total tokens of image and text exceed max message tokens"}}`, 400, true},
		{"Vertex AI", `{"error":{"message":"Unable to submit request because the input token count is 1200000 but model only supports up to 1048576."}}`, 400, true},
		{"Cohere", `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081"}`, 400, true},
		{"llama-cpp-python", `{"error":{"message":"Requested tokens (5000) exceed context window of 4096"}}`, 400, true},
		{"Cloudflare", `{"errors":[{"message":"The estimated number of input and maximum output tokens (5000) exceeded this model context window limit (4096)."}]}`, 400, true},
		{"llama.cpp, newer", `{"error":{"code":400,"message":"request (144055 tokens) exceeds the available context size (131072 tokens), try increasing it","type":"exceed_context_size_error"}}`, 400, true},

		{"vLLM, a limit larger than the window", `{"message":"This model's maximum context length is 8192 tokens. However, you requested 16397 tokens (13 in the messages, 16384 in the completion)."}`, 400, false},
		{"output", `{"error":{"message":"max_tokens: 128000 > 64000, which is the maximum allowed number of output tokens"}}`, 400, false},
		{"tools", `{"error":{"message":"tools: too many tools, the maximum is 128"}}`, 400, false},
		{"a description too long", `{"error":{"message":"Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024"}}`, 400, false},
		{"Amazon, throttled", `{"message":"Too many tokens, please wait before trying again."}`, 429, false},
		{"rate by tokens", `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.","code":"rate_limit_exceeded"}}`, 429, false},
		{"rate by tokens, as 413", `{"error":{"message":"Request too large for model on tokens per minute (TPM): Limit 6000, Requested 7000","type":"tokens","code":"rate_limit_exceeded"}}`, 413, false},
		{"a field too long", `{"error":{"message":"Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64","code":"string_above_max_length"}}`, 400, false},
		{"max_tokens of the answer", `{"error":{"message":"max_tokens is too large: 100000. This model supports at most 16384 completion tokens","param":"max_tokens"}}`, 400, false},
		{"a key", `{"error":{"message":"Incorrect API key provided"}}`, 401, false},
	} {
		t.Run(test.server, func(t *testing.T) {
			err := fmt.Errorf("asking: %w", &llm.HTTPError{Status: test.status, Body: test.body})
			if got := llm.TooLong(err); got != test.want {
				t.Errorf("TooLong = %v, want %v", got, test.want)
			}
		})
	}
	if !llm.TooLong(&llm.ProviderError{Code: "context_length_exceeded", Message: "Your input exceeds the context window of this model."}) {
		t.Error("an error within a stream is not recognised")
	}
	if llm.TooLong(errors.New("prompt is too long")) || llm.TooLong(nil) {
		t.Error("an error of another origin is taken for a provider's")
	}
}
