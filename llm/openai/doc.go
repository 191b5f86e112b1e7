// Package openai calls models over OpenAI's two protocols. Responses is the current protocol and the default for OpenAI's own
// servers. Chat Completions is the protocol that many servers speak: vLLM, llama.cpp, ollama, LM Studio, Groq, Mistral, DeepSeek,
// xAI, OpenRouter, Azure and others.
//
//	model := openai.New(openai.Config{Model: "gpt-5-mini"})
//	local := openai.New(openai.Config{
//		Model: "qwen3",
//		URL:   "http://localhost:8000",
//		Extra: map[string]any{"chat_template_kwargs": map[string]any{"enable_thinking": false}},
//	})
//
// [Config.Protocol] selects the protocol, as does a URL that ends in /responses or /chat/completions. Fields that this package
// does not know go into Config.Extra. A pipeline that needs two settings needs two models.
//
// # Responses
//
// A request contains the whole conversation, and the server stores nothing. The model's reasoning is returned in encrypted form.
// It is stored in the reply's metadata and sent back to the same server with the tool results, so the model can continue its
// reasoning. If the model summarizes its reasoning, the summary arrives as llm.Reasoning:
//
//	thinking := openai.New(openai.Config{
//		Model: "gpt-5-mini",
//		Extra: map[string]any{"reasoning": map[string]any{"effort": "high", "summary": "auto"}},
//	})
//
// With [Config.Stateful], the server stores the conversation, and requests contain only new messages.
//
// User messages and tool results may contain images and documents, also by URL, but no audio.
//
// The stop reason is "completed" or the reason why the response is incomplete, such as "max_output_tokens". A background response
// is polled every two seconds, even if its stream was cut off, until it ends or Timeouts.Total has passed:
//
//	slow := openai.New(openai.Config{
//		Model: "gpt-5-pro",
//		Extra: map[string]any{"background": true, "store": true},
//	})
//
// Sources: OpenAI, API reference, "Responses"; guides "Reasoning models", section "Encrypted
// reasoning items", "Background mode" and "Conversation state". Open Responses, specification of
// 2026-04-24.
//
// # Chat Completions
//
// Compatible servers differ in where they put usage, how they number tool calls, whether
// they send a finish reason, and how they send thinking. This package reads all of these
// forms.
//
// User messages may contain images, documents, and audio as WAV and MP3; only images may be URLs. Tool results can only be text,
// so their media follow them in a user message.
//
// Extra cannot request several choices with n: the choices of an answer are read as its parts, because some servers put the text
// in one choice and the tool calls in another.
//
// Azure requires the full URL of the deployment, and the key in a header of its own:
//
//	openai.Config{
//		Model:  "gpt-4o",
//		URL:    "https://NAME.openai.azure.com/openai/deployments/NAME/chat/completions?api-version=2024-10-21",
//		Header: map[string]llm.Secret{"api-key": key},
//	}
//
// Config.Protocol is [Responses] or [ChatCompletions].
package openai
