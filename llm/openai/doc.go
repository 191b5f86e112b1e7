// Package openai asks models over the Chat Completions protocol, as OpenAI speaks it
// and the many servers that are compatible: vLLM, llama.cpp, ollama, LM Studio, Groq,
// Mistral, DeepSeek, xAI, OpenRouter, Azure and others.
//
//	model := openai.New(openai.Config{Model: "gpt-5-mini"})
//	local := openai.New(openai.Config{
//		Model: "qwen3",
//		URL:   "http://localhost:8000",
//		Extra: map[string]any{"chat_template_kwargs": map[string]any{"enable_thinking": false}},
//	})
//
// Compatible servers differ in nearly everything that can differ: where usage stands,
// how tool calls are numbered, whether there is a finish reason, in what form thinking
// comes. This package reads what they send; what they want to be sent beyond the
// protocol goes into Config.Extra, such as how thinking is turned off, for which every
// server has words of its own. Make two models where one pipeline wants both.
//
// Only the first choice of an answer is read: asking for several in Extra pays for
// what nobody sees.
//
// Azure wants the full URL of the deployment, and the key in a header of its own:
//
//	openai.Config{
//		Model:  "gpt-4o",
//		URL:    "https://NAME.openai.azure.com/openai/deployments/NAME/chat/completions?api-version=2024-10-21",
//		Header: map[string]llm.Secret{"api-key": key},
//	}
package openai
