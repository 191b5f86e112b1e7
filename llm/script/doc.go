// Package script provides a Model with scripted answers, for tests and for examples that cost nothing.
//
//	model := script.New(
//		script.Call("read_file", `{"path":"go.mod"}`),
//		script.Text("The module is called stone."),
//	)
//
// A script answers in process, like any llm.Model, and over HTTP: Model is also an http.Handler for the protocols of all
// providers. It stores all requests, and Requests returns them. Embedder does the same for vectors.
//
// # Recordings
//
// With a recording, a test that was written against a real model runs without the model. A [Recorder] is the transport of a
// model's HTTP client. It forwards each request and writes the exchange to a file as a line of JSON, with each piece of the
// answer and the time at which it arrived:
//
//	rec, err := script.Record("testdata/session.jsonl", nil)
//	model := openai.New(openai.Config{Model: "gpt-5-mini", HTTPClient: rec.Client()})
//	// … ask …
//	err = rec.Close()
//
// A [Player] is the transport that answers from such a file. It identifies requests by method, path and body, and calls (package
// call/rest) by the task and its input, without the run's IDs. A repeated request receives the next answer, or the last answer
// again if none is left. For a request that was not recorded, it returns an error that shows the most similar recorded request.
//
// A recording contains the few answer headers that models read, such as the type and the ID. It omits the headers and the query
// of requests, so keys are not written to the file.
package script
