package client

import (
	"runtime"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
)

// An answer in many chunks takes work in proportion to its length.
func TestManyChunks(t *testing.T) {
	var o output
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 20_000
	for range n {
		o.update(&sdk.TaskArtifactUpdateEvent{Append: true, Artifact: &sdk.Artifact{ID: "a", Parts: sdk.ContentParts{sdk.NewTextPart("ten bytes ")}}})
	}
	runtime.ReadMemStats(&after)
	if reply, err := o.reply(o.artifacts); err != nil || len(reply.Out) != len(`{"text":""}`)+10*n || o.spoken.Len() != 10*n {
		t.Errorf("%d bytes are spoken, %v", o.spoken.Len(), err)
	}
	if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 100 {
		t.Errorf("%d MiB were allocated for %d bytes", made, 10*n)
	}
}
