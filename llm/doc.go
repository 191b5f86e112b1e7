// Package llm is the vocabulary of talking to a language model: messages,
// requests, replies, the deltas of a stream, and the errors of all that can go
// wrong on the way.
//
// A [Model] has one method, Stream. It yields deltas while the model writes and
// ends with a Done delta that holds the whole [Reply], or with an error. Streaming
// is the only path; a caller that wants the whole gets it from [Collect]:
//
//	model := openai.New(openai.Config{Model: "gpt-5-mini"})
//	reply, err := llm.Collect(ctx, model, &llm.Request{
//		System:   "You answer in one sentence.",
//		Messages: []llm.Message{llm.User("Why is the sky blue?")},
//	})
//
// The models themselves are packages of their own, one for each protocol:
// llm/openai speaks Chat Completions (OpenAI and the many servers that are
// compatible with it), llm/anthropic speaks Messages. llm/repetition watches a
// model that gets stuck, and llm/llmtest checks any Model against the contract.
//
// # What came is kept
//
// Streams break: connections drop, providers send errors under status 200, time
// runs out. The delta that comes with the error then holds a Reply with all that
// had arrived, and Collect returns that reply beside the error. Tool arguments
// that were cut off are never repaired: their ToolCall has no Input, and the raw
// text stands in InputText.
//
// # What belongs to the provider
//
// Some of what a model sends must go back to it unread in the next turn:
// signatures of its thinking, encrypted reasoning, the results of tools that the
// provider ran itself. It is kept in Message.Metadata under keys that begin with
// the name of the protocol ("anthropic/content", "openai/reasoning_details"), so
// that messages survive being stored as JSON, and one provider's state is never
// sent to another.
package llm
