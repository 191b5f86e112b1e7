// Package script has a Model with scripted answers, for tests and for examples that cost
// nothing.
//
//	model := script.New(
//		script.Call("read_file", `{"path":"go.mod"}`),
//		script.Text("The module is called stone."),
//	)
//
// A script answers in process, as any llm.Model, and over HTTP: Model is also an
// http.Handler for Chat Completions and Messages. It keeps all requests; Requests returns
// them. Embedder does the same for vectors.
package script
