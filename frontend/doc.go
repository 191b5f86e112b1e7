// Package frontend brings the questions of a pipeline to people who do not sit at
// its terminal: over Go channels, and over HTTP with an answer that comes as a
// callback. A frontend is no part of a pipeline; it stands in stone.Config.
//
//	questions := frontend.NewChannel(0)
//	go func() {
//		for q := range questions {
//			q.Answer(decide(q.Text, q.Choices))
//		}
//	}()
//	res, err := stone.Run(ctx, p, stone.Config{Frontend: questions})
//
// The terminal is the command's own, see package cli.
package frontend
