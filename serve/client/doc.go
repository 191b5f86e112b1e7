// Package client calls a server of package serve.
//
//	c := client.Client{URL: "http://127.0.0.1:8080", Token: os.Getenv("STONE_TOKEN")}
//	run, err := c.Start(ctx, "t-17", api.Start{Pipeline: "triage", Input: input})
//	…
//	run, err = c.Result(ctx, run.ID)
//
// The server keeps the runs, so a caller may exit and ask for the result later. Start with an id
// is safe to repeat: the same request returns the same run.
//
// An error that the server reports is an *api.Problem. If a request does not fit its pipeline,
// the problem has the findings of the validator.
//
// # Servers that restart
//
// If no server answers, or the server is closing or busy, the client retries requests that are
// safe to repeat, for up to Patience. These are all requests except Answer, Cancel, Resume,
// Remove, and Act without an id. Result and Events wait for as long as the run takes.
package client
