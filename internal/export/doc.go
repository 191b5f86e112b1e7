// Package export writes a recorded run in formats of other tools: a profile for go tool
// pprof, which shows where money, tokens, calls and time went, and a trace for Perfetto
// and Chrome, which shows what ran when.
//
//	err := export.Pprof(w, info, db.EachStep(ctx, info.ID))
//
// Both write a step as soon as every step that started before it has been read. They keep the steps that ran at once, and
// those that were started again.
//
// Two profiles can be subtracted: go tool pprof -http=: -diff_base=before.pb.gz after.pb.gz
package export
