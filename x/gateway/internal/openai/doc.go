// Package openai implements the server side of OpenAI's protocols: Responses, Chat Completions and the list of models. Package
// gateway mounts it, so that programs that know nothing about Stone can use its pipelines, with their gates, as models:
//
//	client := openai.NewClient(option.WithBaseURL("http://127.0.0.1:8080/v1"))
//
//	POST /v1/responses                {"model": "stone/page", "input": "marble"}
//	GET  /v1/responses/{id}           ?stream=true&starting_after=3 continues a stream
//	POST /v1/responses/{id}/cancel
//	DELETE /v1/responses/{id}
//	POST /v1/chat/completions         {"model": "stone/page", "messages": […]}
//	GET  /v1/models, GET /v1/models/{model}
//
// # Models
//
// A published pipeline is the model stone/NAME, and an intent of the applicator is the model stone/INTENT. The type that a
// pipeline reads determines what it receives:
//
//   - an llm.Request: the whole request, with its tools and settings. If the result is an llm.Reply, its tool calls are sent to
//     the client. An intent is a pipeline of this form; see [Intent].
//   - []llm.Message: the conversation. If the pipeline also reads a text, it receives the conversation before the last message,
//     and the text of the last message.
//   - a text and an optional agent.Text, as with agent.ConversationOf: the text of the last message, and the conversation before
//     it.
//   - only a text: the text of the message, or a transcript if there are several messages.
//   - any other type: the text of the only message, as JSON.
//
// The answer is the text of the result: the result itself if it is a string, the text of an object that has one, or else the
// result as JSON.
//
// # Runs
//
// Each request starts a run, which is recorded in the journal and continues after a restart. A response has the same id as its
// run. The client can choose the id with the header Idempotency-Key. Closing the connection cancels the run, unless the client
// chose the id or requested background. Metadata become the labels of the run. If store is false, the response is hidden, but not
// the run. With previous_response_id, a request continues the conversation of an earlier response, if the model receives
// conversations.
//
// A stream starts at once, but text is sent only when the run is done, so a client sees nothing that a gate has not accepted. The
// events of a response are always the same, so starting_after can continue after any of them, even on another server.
//
// A model with Live set streams the first answer of its run as it is written; see [Live]. If a gate then rejects the answer, the
// run is cancelled, and the stream ends with response.failed and the code "retracted" or, in a chat, with an error. Such a stream
// can be continued after any event as long as its text is the same; otherwise it ends as failed.
//
// # Reasoning
//
// If an answer has reasoning, its summary is an item of the response. The data that the model's provider needs in the next turn,
// such as encrypted reasoning and signatures, remains in the run. The item refers to this data by its id and, if the request
// includes reasoning.encrypted_content, also by that field. When a client sends the item back together with the unchanged turn,
// the data is passed to the model.
//
// # Parameters
//
// [Parameters] lists which parameters are used, ignored or rejected. Parameters that are not listed are rejected.
package openai
