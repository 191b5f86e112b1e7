// Package export writes a recorded run as a trace for Perfetto and Chrome, which show when each step ran.
//
//	err := export.Chrome(w, info, db.EachStep(ctx, info.ID))
//
// It writes a step as soon as every step that started earlier has been read. It keeps only concurrent and restarted steps in
// memory.
package export
