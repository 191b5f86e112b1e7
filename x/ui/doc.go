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
// Each turn of a conversation is a run with labels, as in the command chat. A conversation therefore needs no table: any server
// that shares the journal can continue it. A repeated message is answered with the same turn. A message that is edited or
// regenerated replaces the later turns, which are canceled.
//
// A client that reconnects gets the reply that is being written from its start. A message answers the question of the turn before
// it.
package ui
