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
// Each pipeline is an agent at /a2a/NAME, with a card at /a2a/NAME/.well-known/agent-card.json. An additional agent at /a2a,
// whose card is at /.well-known/agent-card.json, has one skill for each pipeline, with the pipeline's name. Callers with access
// see the skills in the card and in the extended card; the extension [Schemas] adds the schemas of inputs and results. Other
// callers see only how to send a token.
//
// # Messages
//
// A message that belongs to no task starts a durable run. The field "skill" in its metadata names the skill to run; it may be
// absent if the agent has only one skill. A data part is the pipeline's input. A text is the input itself if the input is a
// string; otherwise it is used as the only required string of the input. A file part becomes the field of the input that accepts
// files: an llm.Media, a list of them, or a base64 string with a contentMediaType. If several fields accept files, "field" in the
// metadata of the part names one. URLs of files are passed on and never fetched. Files in the result are sent as file parts of
// the artifact.
//
// A message that is sent again, with the same id, sender and content, does not start a second run. If a message belongs to the
// context of earlier tasks and the pipeline reads earlier results, as an agent with agent.ConversationOf does, the run receives
// the last result of these tasks.
//
// To send a message, a caller needs the roles Start and Read, because the reply contains the task. To answer a question, it needs
// the role Answer.
//
// # Tasks
//
// Each task is a run with the same id. It therefore survives a restart of the server, and all routes of the API accept its id.
// Its artifact "result" is the result of the run. A stream also contains the answers that models are writing, as chunks of this
// artifact. A chunk without append replaces the earlier chunks.
//
// A task that waits for an answer has the state input-required. Its status contains the text of the oldest open question, and
// data with "question", "choices", "schema" and "version". The next message of the task answers this question, or the question
// named by "question" in the message's metadata. With "version", the answer is refused if the question has changed. Repeating a
// message does not answer another question.
//
// Cancelling a task cancels its run. The history of a task contains its questions and answers. A list with several pages has no
// total. A page has at most about 4 MiB.
//
// # Notifications
//
// Push notifications are sent when a task waits, ends or cannot continue, with the guarantees of [serve.Receivers]. The token of
// a configuration is sent in the header A2A-Notification-Token. If the token begins with "whsec_", it is also used to sign the
// notification. Notifications have the format of version 1.0. Tokens and credentials are stored in the journal, and no request
// returns them.
package server
