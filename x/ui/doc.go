// Package ui serves published pipelines to chat user interfaces. It supports the UI message stream of the AI SDK, and AG-UI:
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
// As in the command chat, each turn of a conversation is a run with labels. Conversations therefore need no table of their own:
// any server that shares the journal can continue them. Repeating a message returns the same turn. Editing or regenerating a
// message cancels and replaces all later turns.
//
// A client that reconnects while a reply is being written receives the reply from its start. If the previous turn has asked a
// question, a message answers this question.
package ui
