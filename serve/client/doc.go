// Package client calls a server of package serve.
//
//	c := client.Client{URL: "http://127.0.0.1:8080", Token: os.Getenv("STONE_TOKEN")}
//	run, err := c.Start(ctx, "t-17", api.Start{Pipeline: "triage", Input: input})
//	…
//	run, err = c.Result(ctx, run.ID)
//
// The server keeps the runs, so the caller may end and ask again later. Start with an id is
// safe to repeat: the same request is the same run.
//
// An error that the server reports is an *api.Problem, with the findings of the validator
// if a request does not fit its pipeline.
//
// # Servers that restart
//
// Requests that are safe to repeat are repeated when no server answers, or it answers that
// it is closing or busy, for up to Patience. These are all but Answer, Cancel, Resume,
// Remove, and Act without an id. Result and Events wait for as long as the run takes.
package client
