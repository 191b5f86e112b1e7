// Package model turns language models into capabilities of kind llm.
//
//	small := model.New(
//		call.Metadata{ID: "model/small", Intents: []string{"text/respond"}, Out: "res/text"},
//		model.Config{Model: openai.New(openai.Config{Model: "gpt-5-mini"}), Prompt: "Answer in one sentence."},
//	)
//
// # The prompt
//
// The instructions come from Config, in this order: Prompt, Role, and the entry of Intents. The question is the input: its field
// prompt or text if that is the only field, otherwise the JSON of the input. Context and constraints follow as JSON. In a repair,
// the context contains the faults of the rejected answer.
//
// # Media
//
// The schema of an input marks pictures, sounds and documents. The model receives these as media rather than as base64 text. A
// field of a Go type is an llm.Media, or a pointer to one:
//
//	type Receipt struct {
//		Question string    `json:"question"`
//		Scan     llm.Media `json:"scan"`
//	}
//
// A schema in a configuration marks a string with contentEncoding and contentMediaType, which may
// end in an asterisk:
//
//	{:type "string" :contentEncoding "base64" :contentMediaType "image/*"}
//
// The schema comes from the input's Go type, or else from the in-schema of the intent or the capability. In the JSON that the
// model reads, each medium is replaced by a line such as "[media 1: receipt.png, image/png, 34 KB]". A judge of the answer is
// shown the same media. Capabilities of other kinds receive the input unchanged.
//
// # The answers of the model
//
// If the call wants text, or sets no schema, the out is {"text": …}. If the out has another schema, the model is asked for JSON
// that fits it. The schema comes from the request: from the call's Go type, or from the schema that the call or its intent names.
// If there is none, the schema named in the metadata is used. A capability without a schema of its own therefore serves calls of
// any type. If the call requires a plan, the answer is the text of a plan, in EDN or JSON.
//
// The model may once repair an answer that does not fit, or that the token limit has cut off. The repair is part of the same
// invocation and is not made if the budget has no tokens or money left for it. If the repair fails too, the error is
// format/drift.
//
// A model whose metadata lists plans in CanProduce may also answer with the envelope of a response, outside a code fence; an
// error in the envelope is format/drift. For any other model, an envelope is plain text.
//
// The voice of the request streams pieces of the answer as they arrive. If an answer is rejected, the error contains its usage,
// since the tokens were paid for.
//
// A model that retries a busy provider itself delays the other candidates of a call. If a
// call has several, give the model a Retry of {Max: -1}.
package model
