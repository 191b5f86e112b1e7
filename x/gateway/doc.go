// Package gateway offers pipelines and intents as models. Clients of OpenAI and Anthropic can use them without changes:
//
//	s, err := serve.New(serve.Config{Journal: db, Applicator: app, Protocols: []serve.Protocol{gateway.Part}})
//
//	POST /v1/responses           and more of OpenAI's Responses
//	POST /v1/chat/completions
//	POST /v1/embeddings          of serve.Config.Embedder
//	GET  /v1/models              the pipelines and intents, as stone/NAME
//	POST /v1/messages            Anthropic's Messages, with count_tokens
//
// The checks of an intent or a pipeline thus apply between these clients and the real models. An answer is sent once it has been
// accepted. If serve.Config.Live contains the name of the model, the answer is sent while it is written.
package gateway
