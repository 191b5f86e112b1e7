// Package batch sends a run's model requests through the providers' batch APIs, which answer within a day for half the price:
//
//	result, err := batch.Run(ctx, pipeline, stone.Config{
//		RunID: "nightly", Recorder: journal.Keep(db, journal.Options{}),
//	}, batch.Config{Journal: db})
//
// The pipeline and its models need no changes. Run holds back all requests of models of llm/openai (Chat Completions and
// Responses), llm/anthropic and llm/gemini, and all requests for document vectors of embedders of llm/openai and llm/gemini. When
// no lane can continue without an answer, Run sends the held requests as batches, one for each model and server, and the run
// waits. When a batch has ended, the run continues with its answers: a thousand agents of five turns make five batches. Other
// requests are sent directly.
//
// [Part] adds the flag --batch to a program that calls cli.Main. A server uses it as serve.Config.Batches.
//
// # Nothing is paid twice
//
// The journal records each batch before it is created, and its id afterwards. If the process dies before the id is recorded, the
// next process finds the batch at the provider: OpenAI and Gemini store its name; at Anthropic, the batch is identified by its
// time, its number of requests and its answers. Answers are recorded like any other answers, so Run with the same id continues
// after the process is killed at any point. The run's lease protects visits and the creation of batches. While the run is
// waiting, no process holds the lease: several processes may poll, and a person may answer or cancel the run. The records of the
// batches are removed with the run.
//
// # Batches that end without an answer
//
// A request that expired, or whose batch failed or disappeared, is sent again in the next batch, at most three times in all. Then
// it fails with an error that names the last batch and how it ended. If somebody has cancelled the batch at the provider, the
// request fails at once. If a batch is rejected as a whole, for example because of a limit on queued tokens, Run pauses and
// creates batches of half the size. A request that the provider could not answer fails with the same error as a direct request. A
// failed run that is resumed sends its requests again.
//
// # Money
//
// Estimated and actual costs are half of the costs of direct requests. While requests wait for a batch, a budget reserves their
// estimated cost, and requests that exceed the budget are rejected before anything is sent. A budget of several runs keeps the
// reservation until the answers are read, even while no process holds the run.
//
// # Limits
//
// A batch contains at most 50,000 requests or 190 MB for OpenAI, 100,000 requests or 240 MB for Anthropic, and 19 MB for Gemini.
// If there are more requests, they are split into several batches. The answers of a batch are held in memory until the run has
// recorded them. For a server without a batch API, run without this package.
//
// # Ending a run
//
// [Cancel] cancels a run's batches. [Made] reports whether a run has batches; if not, journal.Cancel is sufficient.
package batch
