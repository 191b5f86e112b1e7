// Package serve publishes pipelines over HTTP: an API with durable runs.
//
//	db, err := sqlite.Open("stone.db", sqlite.Options{})
//	…
//	s, err := serve.New(serve.Config{
//		Journal:   db,
//		Pipelines: []serve.Pipeline{{Name: "page", Ashlar: page}},
//	})
//	…
//	go s.Run(ctx)                                 // resumes unfinished runs
//	err = http.ListenAndServe("127.0.0.1:8080", s)
//
// The command stone serve is this with a listener and the pipelines of its arguments.
//
// # Runs
//
// A run is started with PUT /v1/runs/ID, where the caller chooses the id, or with POST /v1/runs. It is in the journal before the
// reply. Repeating the request returns the same run, in any process; another request with that id is a conflict. So a caller that
// lost a reply sends its request again.
//
// Several servers may share a journal. Each resumes unheld runs of published pipelines: runs of a server that was stopped or
// died, and runs whose questions have been answered.
//
// # Protocols
//
// With gateway.Part of package x/gateway in Config.Protocols, programs that speak to OpenAI or to Anthropic use pipelines as
// models. With ui.Part of package x/ui, chat UIs talk with them.
//
// # Callers
//
// Config.Access identifies callers. A caller with a tenant sees and starts only runs of that tenant; to it other
// tenants' runs do not exist.
//
// The roles of a caller range from [Read] to [Act], with [Scrape] for metrics alone.
//
// # Notices
//
// A [Webhook] receives a notice when a run ends, waits or is refused. A protocol that lets its callers ask for notices, such as A2A,
// adds a [Receiver] for one run. [WriteHTML] writes a run as one page that needs no server.
package serve
