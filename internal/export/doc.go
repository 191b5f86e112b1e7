// Package export writes a recorded run as a trace for Perfetto and Chrome, which shows what ran when.
//
//	err := export.Chrome(w, info, db.EachStep(ctx, info.ID))
//
// It writes a step as soon as every step that started before it has been read. It keeps in memory the steps that ran concurrently
// and the steps that were started again.
package export
