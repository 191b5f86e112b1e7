package page

import (
	"fmt"
	"testing"

	"github.com/stonelayer/stone/journal"
)

func TestDraw(t *testing.T) {
	info := journal.RunInfo{ID: "r", Shape: []journal.Part{
		{Path: "all", Form: "seq"}, {Path: "all/write", Form: "leaf"},
		{Path: "all/each", Form: "map"}, {Path: "all/each/check", Form: "leaf"},
		{Path: "all/again", Form: "loop", Rounds: 5}, {Path: "all/again/try", Form: "leaf"},
	}}
	steps := []journal.Step{
		{Path: "all/write", Recorded: true}, {Path: "all/write/turn", Recorded: true},
		{Path: "all/each[0]/check", Recorded: true}, {Path: "all/each[1]/check", Recorded: true, Failure: "x"}, {Path: "all/each[2]/check"},
		{Path: "all/again[0]/try", Recorded: true}, {Path: "all/again[1]/try", Recorded: true},
	}
	places, err := journal.OutlineOf(steps).Places(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := draw(info, places)
	got := ""
	for i, b := range d.Boxes {
		got += fmt.Sprintf("%s %q %q %s %t; ", b.Name, b.Note, b.Counts, b.State, b.Frame)
		for _, c := range d.Boxes[:i] {
			inside := b.X > c.X && b.Y > c.Y && b.X+b.W < c.X+c.W && b.Y+b.H < c.Y+c.H
			if apart := b.X >= c.X+c.W || b.Y >= c.Y+c.H; !inside && !apart {
				t.Errorf("%v overlaps %v", b, c)
			}
		}
		if b.X+b.W > d.Width || b.Y+b.H > d.Height {
			t.Errorf("%v is outside %d, %d", b, d.Width, d.Height)
		}
	}
	if len(d.Arrows) != 2 {
		t.Errorf("the arrows are %v", d.Arrows)
	}
	if want := `all "" "✓ 4  ✗ 1  … 1" failed true; write "" "✓" done false; each "map, 3 lanes" "✓ 1  ✗ 1  … 1" failed true; check "" "✓ 1  ✗ 1  … 1" failed false; ` +
		`again "loop, 2 of at most 5 rounds" "✓ 2" done true; try "" "✓ 2" done false; `; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	info.State = journal.Done // what failed was rescued
	if d := draw(info, places); d.Boxes[0].State != "partly" || d.Boxes[3].State != "failed" {
		t.Errorf("a done run is drawn as %v", d.Boxes)
	}
	info.State = ""
	if draw(journal.RunInfo{}, nil) != nil {
		t.Error("a run without a shape has a drawing")
	}
	for i := range 5000 {
		info.Shape = append(info.Shape, journal.Part{Path: fmt.Sprintf("all/each/check/s%d", i), Form: "leaf"})
	}
	if d := draw(info, nil); len(d.Boxes) != 6 {
		t.Errorf("a large pipeline has %d boxes", len(d.Boxes))
	}
}
