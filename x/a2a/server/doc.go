// Package server publishes pipelines to clients of the Agent2Agent protocol (A2A), versions 1.0 and 0.3, over
// JSON-RPC and REST, as mounts of a server:
//
//	s, err := serve.New(serve.Config{
//		Journal:   db,
//		Pipelines: pipelines,
//		Mounts:    server.Mounts(server.Config{}),
//	})
//
// # The agents
//
// Each pipeline is an agent at /a2a/NAME, with a card at /a2a/NAME/.well-known/agent-card.json. The agent at /a2a, whose
// card is at /.well-known/agent-card.json, has each pipeline as a skill of its name. The skills, with the
// schemas of their inputs and results in the extension [Schemas], are shown to callers that the server
// lets in, in the card and in the extended card; others see how to send a token.
//
// # Messages
//
// A message without a task starts a durable run of the skill that "skill" in its metadata names; an agent
// with one skill needs no name. A data part is the input of the pipeline. Text is the input where that
// is a string, or its only required string beside the data. A file part is the field of the input that takes files: an
// llm.Media, a list of them, or a base64 string with a contentMediaType. If several do, "field" in the metadata of the
// part names one. URLs of files are passed on and never fetched. Files in the result are file parts of the artifact.
//
// The same message, by its id, sender and content, starts one run, however often it is sent. A message in the
// context of earlier tasks gives the pipeline the result of the last one if it reads that, as an agent
// with agent.ConversationOf does.
//
// A caller needs the roles Start and Read to send a message, since the reply is the task, and Answer to answer.
//
// # Tasks
//
// A task is a run, and has its id. So it outlives the server, and every route of the server knows it. Its
// artifact "result" is the result of the run. A stream also has the answers that models are writing, as
// chunks of this artifact; one that replaces the chunks before, without append, takes them back.
//
// A task that waits for an answer is input-required. Its status has the text of the oldest open question, and
// as data its "question", "choices", "schema" and "version". The next message of the task is the answer to it, or to the
// question that "question" in the metadata names, and "version" there makes sure that it is still the same. A
// message that is sent again answers nothing else.
//
// Cancelling a task cancels its run. The history of a task has its questions and their answers.
// The list of tasks has no total if it has several pages. A page ends when it has about 4 MiB.
//
// # Notifications
//
// Push notifications are sent when a task waits, ends or cannot continue, as [serve.Receivers] promises. The token of a
// configuration is sent in the header A2A-Notification-Token, and signs the notification if it begins
// with "whsec_". Notifications have the form of version 1.0. Tokens and credentials are kept in the journal, and no request returns them.
package server
