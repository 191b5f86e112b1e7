// Package page shows runs in a browser: the list of them, each with its tree of steps,
// the contents of its nodes, and a form for each question.
//
//	pages := page.Handler(page.Config{
//		View: func(*http.Request) page.View { return page.View{Journal: db} },
//	})
//
// A page is HTML that the server has rendered. It needs no JavaScript, with which it is
// live: a script asks for the page again when the stream of events of the API says that
// something happened, and replaces the parts that changed. The script and the style are
// files of the server, and the policy of every page allows nothing else, so that a text
// of a model, a tool or a person is never code.
//
// A page is bounded however large the run is: it has at most a hundred rows, contents are
// cut, and a run with more than a few thousand steps is read one level at a time.
//
// [Write] writes a run as one file that needs no server.
package page
