// Package replay records what providers answer and gives the same answers again, so
// that a test with a real model behind it runs without one.
//
// A [Recorder] is the transport of a model's HTTP client; it passes everything on and
// writes each exchange to a file, a line of JSON for each, with the pieces of the
// answer and the time at which each came:
//
//	rec, err := replay.Record("testdata/session.jsonl", nil)
//	model := openai.New(openai.Config{Model: "gpt-5-mini", HTTPClient: rec.Client()})
//	// … ask …
//	err = rec.Close()
//
// A [Player] is the transport that answers from such a file. Requests are told apart by
// their method, path and body; the same request again gets the next of its answers, and
// the last one from then on. A request that was not recorded is an error that shows the
// nearest one that was.
//
// Of the headers only the type and the id of an answer are kept, never those of a
// request, and no query: no key gets into the file.
package replay
