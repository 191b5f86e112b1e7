// Package serve publishes pipelines over HTTP. Its API starts and controls durable runs.
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
// The command "stone serve" does the same for the pipelines named in its arguments.
//
// # Runs
//
// A run is started with PUT /v1/runs/ID, where the caller chooses the id, or with POST /v1/runs. The run is recorded in the
// journal before the reply is sent. A repeated request returns the same run, whichever process receives it; a different request
// with that id is a conflict. A caller that did not receive a reply can therefore send its request again.
//
// Several servers may share a journal. Each server resumes runs of its pipelines that no process is executing: runs whose server
// was stopped or crashed, and waiting runs whose questions have been answered.
//
// # Protocols
//
// Config.Protocols adds protocols to the server. With gateway.Part of package x/gateway, programs written for OpenAI or Anthropic
// can use pipelines as models. With ui.Part of package x/ui, chat user interfaces can talk to pipelines.
//
// # Callers
//
// Config.Access identifies callers. A caller with a tenant can see and start only runs of that tenant; runs of other tenants are
// reported as not found.
//
// A caller's roles, from [Read] to [Act], determine what it may do; [Scrape] permits only reading metrics.
//
// # Notices
//
// A [Webhook] receives a notice when a run ends, waits for an answer or is refused. If a protocol, such as A2A, lets its callers
// request notices about a run, it adds a [Receiver] for this run. [WriteHTML] writes a run as a single HTML page that needs no
// server.
package serve
