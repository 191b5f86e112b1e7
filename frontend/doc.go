// Package frontend sends the questions of a pipeline over a Go channel, to the program around it. A
// frontend is part of stone.Config, not of the pipeline.
//
//	questions := frontend.NewChannel(0)
//	go func() {
//		for q := range questions {
//			q.Answer(decide(q.Text, q.Choices), "ada")
//		}
//	}()
//	res, err := stone.Run(ctx, p, stone.Config{Frontend: questions})
//
// Package cli asks questions at the terminal; package serve has pages, an API, MCP and webhooks for
// them, whose answers outlive the process.
package frontend
