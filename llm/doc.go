// Package llm defines how programs talk to a language model: messages, requests,
// replies, the deltas of a stream, and errors.
//
// A [Model] has one method, Stream. It yields deltas while the model writes, and ends with a Done delta that contains the
// complete [Reply], or with an error. Every request streams; [Collect] returns only the complete reply:
//
//	model := openai.New(openai.Config{Model: "gpt-5-mini"})
//	reply, err := llm.Collect(ctx, model, &llm.Request{
//		System:   "You answer in one sentence.",
//		Messages: []llm.Message{llm.User("Why is the sky blue?")},
//	})
//
// Each protocol has a package: llm/openai for Chat Completions (OpenAI and the many compatible servers), llm/anthropic for
// Messages, llm/gemini for Google's Gemini API. [Guard] stops a model that repeats itself, and stonetest.TestModel tests any
// Model against the contract.
//
// [Fallback] calls the next model when one fails; call.Model is a model that routes every request to a capability.
//
// An [Embedder] turns texts into vectors, for package retrieve. Packages openai and gemini each provide one for their protocol.
//
// # Limits and the table of models
//
// Models that use the same [Limiter] share its [Limits]:
//
//	shared := llm.NewLimiter(llm.Limits{RequestsPerMinute: 500, Concurrency: 20})
//	large := openai.New(openai.Config{Model: "gpt-5", Limiter: shared})
//	small := openai.New(openai.Config{Model: "gpt-5-mini", Limiter: shared})
//
// Every client obeys the rate headers and the pauses of its server. While a request is waiting, it yields Progress deltas whose
// Text states the reason.
//
// [WithTable] adds a table of models to a context: their prices, windows, abilities and limits. A request that cannot fit its
// model fails with an [UnfitError] before it is sent, and an answer is limited to what remains of the window.
//
// # Media
//
// A message can contain images, sounds, videos and documents as parts, given by their bytes or by a URL:
//
//	picture, err := llm.ReadMedia("receipt.jpg")
//	…
//	llm.User("What was bought?", picture)
//
// User messages and tool results may contain media. A request with media that the protocol cannot express is rejected before
// anything is sent; [CheckMedia] checks in advance. If a protocol allows only text in tool results, their media follow the turn's
// results in a user message. A line of text in both places identifies them.
//
// # Partial replies are kept
//
// Streams break: connections drop, providers send errors with status 200, and time runs out. The delta that is yielded with the
// error then contains a Reply with everything received so far, and Collect returns that reply together with the error. Truncated
// tool arguments are never repaired: their ToolCall has no Input, and its InputText contains the raw text.
//
// # Provider state
//
// Some parts of an answer must be sent back to the provider unchanged in the next turn: thinking signatures, encrypted reasoning,
// and the results of tools that the provider itself ran. Message.Metadata contains them under keys that begin with the name of
// the protocol ("anthropic/content", "openai/reasoning_details"). Messages can therefore be stored as JSON, and one provider's
// state is never sent to another.
//
// # Messages and models
//
// [User], [Assistant] and [ToolResult] make messages, with the roles [RoleUser], [RoleSystem] and others. [NewMedia], [ReadMedia]
// and [MediaURL] make media; [AnyImage] is the media type of a picture whose format is unknown. Deltas such as [ToolCallStart]
// and [ToolInput] carry the pieces of a reply. A [Format] requires JSON that fits a schema. An [EmbedRequest] contains texts for
// an [Embedder], which returns an [Embedding]. [Informer] and [Checker] are optional interfaces of a model. A [Table] returns the
// known facts about models.
//
// # Repetition
//
// [Guard] stops a model that repeats itself. [NewWatcher] returns a [Watcher] for it, with an [NGram] and a [Compression]
// detector that use their defaults.
//
// # For packages of models and agents
//
// [Quote] and [QuoteEmbed] estimate the cost of a request; a [Meter], from [NewMeter] or [NewEmbedMeter], measures it. A [Prefix]
// is the part of a request whose length is already known. [CheckFit] and [CheckParams] reject a request that the model cannot
// answer, and [TooLong] recognizes a provider's rejection of a long request. [InfoOf], [SpecOf] and [SpecOfEmbedder] return the
// known facts about a model. [NewReport] sends the events of a request, and [Recall] the events of a recorded request.
// [ProgressInterval] is the time between two Progress deltas.
package llm
