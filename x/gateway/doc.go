// Package gateway serves pipelines and intents as models to unchanged clients of OpenAI and Anthropic:
//
//	s, err := serve.New(serve.Config{Journal: db, Applicator: app, Protocols: []serve.Protocol{gateway.Part}})
//
//	POST /v1/responses           and more of OpenAI's Responses
//	POST /v1/chat/completions
//	POST /v1/embeddings          of serve.Config.Embedder
//	GET  /v1/models              the pipelines and intents, as stone/NAME
//	POST /v1/messages            Anthropic's Messages, with count_tokens
//
// The checks of an intent or a pipeline apply between these clients and the real models. An answer is sent once it is accepted
// or, for the names in serve.Config.Live, as it is written.
package gateway
