// Package gemini calls models over the native protocol of Google's Gemini API, generateContent
// and streamGenerateContent, at Google AI and Vertex AI.
//
//	model := gemini.New(gemini.Config{Model: "gemini-2.5-flash"})
//
// Vertex AI uses the same protocol at its own address, with a token in place of the key:
//
//	model := gemini.New(gemini.Config{
//		Model:   "gemini-2.5-flash",
//		URL:     "https://europe-west4-aiplatform.googleapis.com/v1/projects/PROJECT/locations/europe-west4/publishers/google",
//		KeyFunc: token, // sent as a bearer token
//	})
//
// # Thinking
//
// Config.Extra requests readable thinking, which becomes Reply.Reasoning:
//
//	Extra: map[string]any{"generationConfig": map[string]any{"thinkingConfig": map[string]any{"includeThoughts": true}}}
//
// Models sign parts of their answers, and newer models reject a conversation whose tool calls lack the signature. The reply's
// metadata contains the parts under "gemini/content". They are sent again verbatim as long as the message's text and tool calls
// still equal the reply's. Tool calls from another provider's model are sent with the signature that Google documents for this
// case.
//
// The effort of llm.Params is the thinking level of Gemini 3. For Gemini 2.5, it is a thinking budget of 0 (none), 1,024
// (minimal, low), 8,192 (medium) or 24,576 tokens (high). Older models reject an effort.
//
// # Formats
//
// The provider enforces the part of a response format's schema that it supports; descriptions express everything else. Models
// before Gemini 3 do not support tools and a format in one request; in that case, their system text contains the schema.
//
// # Tool calls
//
// Not every model sends IDs with its calls. The package adds unique IDs where they are missing, but does not send them.
//
// # Media
//
// A request may contain images (PNG, JPEG, WebP, HEIC, HEIF) and media of any other kind, which the model may reject. In a tool
// result, Gemini 3 accepts images (PNG, JPEG, WebP), PDF documents and text. Other media, and all media for older models, follow
// the turn's results, where a line of text identifies them. Pictures and sounds in an answer become Reply.Media.
//
// # Blocked answers
//
// If a filter blocks an answer or a prompt, the Reply has a Refusal, and Reply.Refused reports true. Other abnormal ends, such as
// MALFORMED_FUNCTION_CALL, are reported as an *llm.ProviderError whose Type is the finish reason.
//
// # Sources
//
// Google, Gemini API reference, pages "Generating content" and "Caching" (messages, finish reasons,
// usage); Gemini API guides "Thought signatures", "Gemini 3 developer guide" (signatures of other
// models' calls), "Function calling", "Structured outputs" and "OpenAI compatibility" (budgets of
// thinking); Google Cloud API design guide, "Errors" (error bodies, RetryInfo).
package gemini
