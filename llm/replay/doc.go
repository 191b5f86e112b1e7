// Package replay records the answers of providers and plays them back, so that a test
// written against a real model runs without one.
//
// A [Recorder] is the transport of a model's HTTP client. It forwards each request and
// writes the exchange to a file as a line of JSON, with the pieces of the answer and the
// time of each:
//
//	rec, err := replay.Record("testdata/session.jsonl", nil)
//	model := openai.New(openai.Config{Model: "gpt-5-mini", HTTPClient: rec.Client()})
//	// … ask …
//	err = rec.Close()
//
// A [Player] is the transport that answers from such a file. It identifies requests by
// method, path and body, and calls (package call/rest) by the task and its input, without
// the ids of the run. A repeated request gets the next of its answers, and after the
// last one always the last. A request that was not recorded is an error that shows the
// nearest recorded one.
//
// A recording has the few headers of an answer that models read, such as its type and id.
// It has neither the headers nor the query of a request, so that no key gets into the file.
package replay
