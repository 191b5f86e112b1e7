// Package model makes capabilities of language models, which are of kind llm.
//
//	small := model.New(
//		call.Metadata{ID: "model/small", Intents: []string{"text/respond"}, Out: "res/text"},
//		model.Config{Model: openai.New(openai.Config{Model: "gpt-5-mini"}), Prompt: "Answer in one sentence."},
//	)
//
// # The prompt
//
// The instructions are those of Config, one below the other: Prompt, Role, and the entry
// of Intents. The question is the input: the text of prompt or text if the input has no
// other field, otherwise the JSON of the input. Context and constraints follow as JSON,
// and with them the faults of an answer that is to be repaired.
//
// # The answers of the model
//
// If the call wants text, or sets no schema, the out is {"text": …}. If the out has
// another schema, the model is asked for JSON of it, see package llm/structured. The schema
// is that of the request, which is the one of the call's Go type or of the name that the
// call or its intent sets; otherwise it is the one that the metadata names. A capability
// without a schema of its own therefore serves calls of any type. If the call requires a
// plan, the answer is the text of one, in EDN or JSON.
//
// The model may repair an answer that does not fit, or that the token limit cut off, once.
// The repair is part of the same invocation and is not made if the budget has no tokens or
// money left for it. If it fails too, the error is format/drift.
//
// A model whose metadata lists plans in CanProduce may also answer with the
// envelope of a response, outside of a code fence; an error in the envelope is
// format/drift. For any other model an envelope is text.
//
// The voice of the request streams pieces of the answer as they arrive. If an answer is
// rejected, the error comes with its usage, since the tokens were paid for.
//
// A model that retries a busy provider itself delays the other candidates of a call. If a
// call has several, give the model a Retry of {Max: -1}.
package model
