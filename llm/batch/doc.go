// Package batch has the models of a run answer in the batches of their providers, within a day and for half the
// price:
//
//	result, err := batch.Run(ctx, pipeline, stone.Config{
//		RunID: "nightly", Recorder: journal.Keep(db, journal.Options{}),
//	}, batch.Config{Journal: db})
//
// Pipeline and models stay as they are. Every request that a model of llm/openai (Chat
// Completions and Responses), llm/anthropic or llm/gemini would send is held back, and what asked waits. So are the
// requests of an embedder of llm/openai or llm/gemini for the vectors of documents. Once all
// that can be done is done, the requests of all lanes become batches, one for each model and server, and the run
// parks. When a batch has ended, the run continues with its answers: a thousand agents of five turns make five
// batches. Other requests are sent as always.
//
// # Nothing is paid twice
//
// A batch is noted in the journal before it is made, and its id after. A process that dies between the two leaves
// a note, by which the next one finds the batch at the provider: OpenAI and Gemini keep its name, and Anthropic's
// are told by time, number of requests and the answers. Answers are read from the provider as the run asks for
// them and recorded as any others are, so that Run with the same id continues after a kill at any point. The lease of the run
// guards its visits and the making of its batches. While it waits, no process holds it: several may look, and a person may answer or
// cancel it. The notes are removed with the run.
//
// # Batches that end without an answer
//
// A request that expired, or whose batch failed or is gone, is asked again in the next batch, at most three times in all. Then it
// fails with an error that names the last batch and its end. If somebody has canceled the batch at the provider, it fails at once. After
// a batch that was refused as a whole, as for a limit of queued tokens, Run pauses and makes batches of half the size. A request that
// the provider could not answer fails as it would have failed directly, with the same error. A run that has failed and is resumed
// asks anew.
//
// # Money
//
// Quotes and costs are halved. While requests wait for a batch, a budget holds what they may cost: what exceeds it
// is refused before anything is sent. A budget over several runs holds it until the answers are read, also while no process
// has the run.
//
// # Limits
//
// A batch has at most 50,000 requests or 190 MB for OpenAI, 100,000 or 240 MB for Anthropic and 19 MB for Gemini; more
// requests make more batches. The answers of a batch are in memory until the run has recorded them. A server that speaks a protocol without its batches
// refuses them: then run without this package.
//
// # Ending a run
//
// [Cancel] cancels the batches of a run. [Made] says whether it has any; if not, journal.Cancel is enough.
package batch
