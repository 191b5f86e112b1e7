// Package openai implements the server side of OpenAI's protocols: Responses, Chat Completions and the list of models. Package
// gateway mounts it, so programs that know nothing about Stone can use its pipelines as models, behind its gates:
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
// A published pipeline is the model stone/NAME, and an intent of the Applicator is the model stone/INTENT. The type that a
// pipeline reads determines its input:
//
//   - an llm.Request: the whole request, with its tools and settings. If the result is an
//     llm.Reply, its tool calls reach the client. An intent is a pipeline of this form, see
//     [Intent].
//   - []llm.Message: the conversation. Beside a text, the conversation before the last message, and that message's text.
//   - an agent.Text that is optional, as of agent.ConversationOf, beside a text: the
//     conversation before the last message.
//   - a text alone: the text of the message; a transcript if there are several.
//   - anything else: the text of the one message as JSON.
//
// The answer is the text of the result: a string, the text of an object that has one, or the result's JSON.
//
// # Runs
//
// Each request is a run, which is in the journal and continues after a restart. A response has the id of its run. The header
// Idempotency-Key chooses the id. A client that closes the connection cancels the run, unless it chose the id or requested
// background. Metadata become the run's labels; store set to false hides the response, not the run. With previous_response_id, a
// request continues the conversation of an earlier one, if the model gets a conversation.
//
// A stream starts at once, and its text follows once the run is done: a client sees nothing that a gate has not accepted. A
// response always has the same events, so starting_after can continue after any of them, even at another server.
//
// A model with Live streams the first answer of its run as it is written, see [Live]. If a gate then rejects it, the run is
// cancelled and the stream ends with response.failed and the code "retracted", or in a chat with an error. A stream continues
// after any event as long as its text is the same; otherwise it ends as failed.
//
// # Reasoning
//
// An answer with reasoning has an item with its summary. The data that the model's provider needs in the next turn, such as
// encrypted reasoning and signatures, stays in the run. The item refers to this data by its id and, if the request includes
// reasoning.encrypted_content, by that field. When a client sends back the item with the unchanged turn, the model gets the data.
//
// # Parameters
//
// [Parameters] lists the parameters that are used, ignored or rejected. All others are rejected.
package openai
