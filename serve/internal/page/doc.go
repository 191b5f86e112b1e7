// Package page shows runs in a browser: the list of runs, and for each its tree of steps, the contents of its nodes, and a form
// for each question.
//
//	pages := page.Handler(page.Config{
//		View: func(*http.Request) page.View { return page.View{Journal: db} },
//	})
//
// A page is HTML rendered by the server. It works without JavaScript. With it, a script requests the page again when the event
// stream of the API reports a change, and replaces the changed parts. The script and the style are files of the server, and the
// policy of every page allows nothing else, so text from a model, a tool or a person is never executed.
//
// The size of a page is limited for any run: it has at most a hundred rows, contents are truncated, and a run with more than a
// few thousand steps is read one level at a time.
//
// [Write] writes a run as one file that needs no server.
package page
