// Package export writes a recorded run in formats of other tools: a profile for go tool
// pprof, which shows where money, tokens, calls and time went, and a trace for Perfetto
// and Chrome, which shows what ran when.
//
//	steps, err := db.Steps(ctx, run)
//	…
//	err = export.Pprof(w, info, steps)
//
// Two profiles can be subtracted: go tool pprof -http=: -diff_base=before.pb.gz after.pb.gz
package export
