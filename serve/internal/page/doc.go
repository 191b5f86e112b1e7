// Package page shows runs in a browser: a list of the runs, and for each run its tree of steps, the contents of its nodes, and a
// form for each question.
//
//	pages := page.Handler(page.Config{
//		View: func(*http.Request) page.View { return page.View{Journal: db} },
//	})
//
// A page is HTML rendered by the server, and works without JavaScript. If JavaScript is available, a script requests the page
// again when the API's event stream reports a change, and replaces the parts that have changed. The script and the style sheet
// are files served by the server. The policy of every page allows nothing else, so text from a model, a tool or a person is never
// executed.
//
// The size of a page is limited, however large the run: a page has at most a few hundred rows, contents are truncated, and a run
// with more than 20,000 steps is read one level at a time.
//
// [Write] writes a run as one file that needs no server.
package page
