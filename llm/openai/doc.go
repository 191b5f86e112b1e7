// Package openai calls models over the Chat Completions protocol of OpenAI and the many
// compatible servers: vLLM, llama.cpp, ollama, LM Studio, Groq, Mistral, DeepSeek, xAI,
// OpenRouter, Azure and others.
//
//	model := openai.New(openai.Config{Model: "gpt-5-mini"})
//	local := openai.New(openai.Config{
//		Model: "qwen3",
//		URL:   "http://localhost:8000",
//		Extra: map[string]any{"chat_template_kwargs": map[string]any{"enable_thinking": false}},
//	})
//
// Compatible servers differ in where they put usage, how they number tool calls, whether
// they send a finish reason, and how they send thinking. This package reads all of these
// forms. Fields beyond the protocol go into Config.Extra, such as the switch that turns
// thinking off, which every server names differently. A pipeline that needs both settings
// needs two models.
//
// Only the first choice of an answer is read; further choices requested in Extra are
// billed and ignored.
//
// Azure needs the full URL of the deployment, and the key in its own header:
//
//	openai.Config{
//		Model:  "gpt-4o",
//		URL:    "https://NAME.openai.azure.com/openai/deployments/NAME/chat/completions?api-version=2024-10-21",
//		Header: map[string]llm.Secret{"api-key": key},
//	}
package openai
