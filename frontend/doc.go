// Package frontend sends the questions of a pipeline to people who do not sit at its terminal:
// over Go channels, or over HTTP with the answer as a callback. A frontend is part of
// stone.Config, not of the pipeline.
//
//	questions := frontend.NewChannel(0)
//	go func() {
//		for q := range questions {
//			q.Answer(decide(q.Text, q.Choices), "ada")
//		}
//	}()
//	res, err := stone.Run(ctx, p, stone.Config{Frontend: questions})
//
// Package cli asks questions at the terminal.
package frontend
