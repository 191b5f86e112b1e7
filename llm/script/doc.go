// Package script is a Model that says what it was told to say, for tests and for
// examples that cost nothing.
//
//	model := script.New(
//		script.Call("read_file", `{"path":"go.mod"}`),
//		script.Text("The module is called stone."),
//	)
//
// A script answers in process, as any llm.Model, and over HTTP: Model is an
// http.Handler too, and speaks Chat Completions and Messages, whichever it is asked
// in. Requests that come are kept, and Requests returns them.
package script
