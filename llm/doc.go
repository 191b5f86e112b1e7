// Package llm defines how programs talk to a language model: messages, requests,
// replies, the deltas of a stream, and errors.
//
// A [Model] has one method, Stream. It yields deltas while the model writes and
// ends with a Done delta that has the whole [Reply], or with an error. Every request
// streams; [Collect] returns only the complete reply:
//
//	model := openai.New(openai.Config{Model: "gpt-5-mini"})
//	reply, err := llm.Collect(ctx, model, &llm.Request{
//		System:   "You answer in one sentence.",
//		Messages: []llm.Message{llm.User("Why is the sky blue?")},
//	})
//
// Each protocol has a package: llm/openai for Chat Completions (OpenAI and the many
// compatible servers), llm/anthropic for Messages, llm/gemini for Google's Gemini API.
// llm/repetition stops a model that repeats itself, and stonetest.TestModel tests any Model against
// the contract.
//
// [Fallback] calls the next model when one fails; call.Model is a model that routes every request to a capability.
//
// An [Embedder] turns texts into vectors, for package retrieve. The packages openai and gemini provide one for each protocol.
//
// # Limits and the table of models
//
// Models that are given the same [Limiter] share its [Limits]:
//
//	shared := llm.NewLimiter(llm.Limits{RequestsPerMinute: 500, Concurrency: 20})
//	large := openai.New(openai.Config{Model: "gpt-5", Limiter: shared})
//	small := openai.New(openai.Config{Model: "gpt-5-mini", Limiter: shared})
//
// Every client obeys the rate headers and the pauses of its server. A waiting request yields Progress deltas whose Text states
// the reason.
//
// [WithTable] adds a table of models to a context: their prices, windows, abilities and limits. A request that cannot fit its
// model fails with an [UnfitError] before it is sent, and an answer is limited to the rest of the window.
//
// # Media
//
// A message has images, sounds, videos and documents as parts, with their bytes or their URL:
//
//	picture, err := llm.ReadMedia("receipt.jpg")
//	…
//	llm.User("What was bought?", picture)
//
// Media may be in user messages and in tool results. A request with media that the protocol cannot express is rejected before
// anything is sent; [CheckMedia] checks in advance. If a protocol allows only text in tool results, their media follows the
// turn's results in a user message, and a text in both places identifies it.
//
// # Partial replies are kept
//
// Streams break: connections drop, providers send errors with status 200, time runs out. The delta beside the error then has a
// Reply with everything received so far, and Collect returns that reply beside the error. Truncated tool arguments are never
// repaired: their ToolCall has no Input, and its InputText holds the raw text.
//
// # Provider state
//
// Some parts of an answer must be returned to the provider unchanged in the next turn: thinking signatures, encrypted reasoning,
// and the results of tools that the provider ran itself. Message.Metadata keeps them under keys that begin with the name of the
// protocol ("anthropic/content", "openai/reasoning_details"). Messages can therefore be stored as JSON, and one provider's state
// is never sent to another.
//
// # Messages and models
//
// [User], [Assistant] and [ToolResult] make messages, with the roles [RoleUser], [RoleSystem] and others. [NewMedia], [ReadMedia]
// and [MediaURL] make media; [AnyImage] is the type of a picture whose format is unknown. Deltas such as [ToolCallStart] and
// [ToolInput] carry the pieces of a reply. A [Format] requires JSON that fits a schema. An [EmbedRequest] holds texts for an
// [Embedder], which returns an [Embedding]. [Informer] and [Checker] are optional interfaces of a model. A [Table] returns the
// known facts about models.
//
// # Repetition
//
// [Guard] stops a model that repeats itself. [NewWatcher] returns the [Watcher] that it needs, with an [NGram] and a [Compression]
// detector at their defaults.
//
// # For packages of models and agents
//
// [Quote] and [QuoteEmbed] estimate the cost of a request; a [Meter], from [NewMeter] or [NewEmbedMeter], measures it, from its
// [Prefix] on. [CheckFit] and [CheckParams] reject a request that the model cannot answer, and [TooLong] recognises a provider's
// rejection of a long request. [InfoOf], [SpecOf] and [SpecOfEmbedder] return the known facts about a model. [NewReport] sends
// the events of a request, and [Recall] the events of a recorded request. [ProgressInterval] is the time between two Progress
// deltas.
package llm
