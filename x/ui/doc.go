// Package ui serves published pipelines to chat user interfaces, over the UI message stream of the AI SDK and over AG-UI:
//
//	s, err := serve.New(serve.Config{Journal: db, Pipelines: pipelines, Protocols: []serve.Protocol{ui.Part}})
//
//	POST /v1/ui/{name}                  a message or answers; the reply is streamed
//	GET  /v1/ui/{name}                  the conversations with a pipeline; GET /v1/threads lists all
//	GET  /v1/ui/{name}/{chat}           the messages of a conversation
//	GET  /v1/ui/{name}/{chat}/stream    the reply that is being written
//	POST /v1/agui/{name}                the same over AG-UI
//
// # Conversations
//
// Each turn of a conversation is a run with labels, as the command chat makes them. So a conversation needs no table: any
// server of the journal continues it. The same message again is answered with the same turn. A message that was edited, or asked
// again, takes the place of the turns after it, which are canceled.
//
// A client that comes back gets the reply that is being written from its start. A message answers what the turn before it asks.
package ui
