// Package server publishes pipelines to clients of the Agent2Agent protocol (A2A), versions 1.0 and 0.3, over JSON-RPC and REST.
// A server mounts it:
//
//	s, err := serve.New(serve.Config{
//		Journal:   db,
//		Pipelines: pipelines,
//		Mounts:    server.Mounts(server.Config{}),
//	})
//
// # The agents
//
// Each pipeline is an agent at /a2a/NAME, with a card at /a2a/NAME/.well-known/agent-card.json. The agent at /a2a, whose card is
// at /.well-known/agent-card.json, has each pipeline as a skill of the same name. Callers with access see the skills in the card
// and the extended card, with input and result schemas in the extension [Schemas]; others see only how to send a token.
//
// # Messages
//
// A message without a task starts a durable run of the skill named by "skill" in its metadata; an agent with one skill needs no
// name. A data part is the pipeline's input. Text is the input if that is a string, or else becomes its only required string. A
// file part is the field of the input that takes files: an llm.Media, a list of them, or a base64 string with a contentMediaType.
// If several do, "field" in the metadata of the part names one. URLs of files are passed on and never fetched. Files in the
// result are file parts of the artifact.
//
// Sending a message again, with the same id, sender and content, starts no second run. If a pipeline reads earlier results, as an
// agent with agent.ConversationOf does, a message in the context of earlier tasks gives it the last result.
//
// A caller needs the roles Start and Read to send a message, because the reply is the task, and Answer to answer.
//
// # Tasks
//
// A task is a run with the same id, so it outlives the server and every route knows it. Its artifact "result" is the run's
// result. A stream also sends the models' answers as they are written, as chunks of this artifact; a chunk without append
// replaces the earlier chunks.
//
// A task that waits for an answer is input-required. Its status contains the text of the oldest open question, and data with
// "question", "choices", "schema" and "version". The task's next message answers this question, or the one named by "question" in
// its metadata; "version" there ensures that the question has not changed. A repeated message answers nothing else.
//
// Cancelling a task cancels its run. A task's history has its questions and answers. A list of several pages has no total. A page
// is at most about 4 MiB.
//
// # Notifications
//
// Push notifications are sent when a task waits, ends or cannot continue, as [serve.Receivers] promises. The token of a
// configuration is sent in the header A2A-Notification-Token, and signs the notification if it begins with "whsec_".
// Notifications are in the format of version 1.0. Tokens and credentials are kept in the journal, and no request returns them.
package server
