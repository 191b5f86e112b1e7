// Package model makes capabilities of language models, which are of kind llm.
//
//	small := model.New(
//		call.Metadata{ID: "model/small", Intents: []string{"text/respond"}, Out: "res/text"},
//		model.Config{Model: openai.New(openai.Config{Model: "gpt-5-mini"}), Prompt: "Answer in one sentence."},
//	)
//
// # What the model is told
//
// Its instructions are those of Config, one below the other: Prompt, that of the
// role, that of the intent. Its question is the input: prompt or text as they are if
// the input has nothing else, the JSON of the input otherwise; context and
// constraints follow as JSON, and with them what was wrong with an answer that is to
// be repaired.
//
// # What it may answer
//
// Where the call wants text, or nothing in particular, the out is {"text": …}. Where
// the out has another schema, the model is asked for JSON of it; an answer that is
// none, in a code fence or not, is format/drift. Where the call requires a plan, the
// answer is the text of one, in EDN or JSON. A model whose metadata say that it
// produces plans may also answer with the envelope of a response, which is then its
// reply; not within a code fence, and an error in it is format/drift. For any other
// model an envelope is text.
//
// The voice of the request streams pieces of the answer as they arrive. The tokens of an answer that
// is refused are told beside the error, since they were paid for.
//
// A model that asks again by itself when its provider is busy keeps others from
// being asked meanwhile: give it a Retry of {Max: -1} where a call has candidates.
package model
