package serve

import (
	"fmt"
	"testing"

	"github.com/stonelayer/stone/journal"
)

// A client gets what follows its place, wherever it was told that.
func TestFeedAfter(t *testing.T) {
	f := &feed{from: place{seq: 2}, last: place{seq: 2}, news: make(chan struct{})}
	for _, p := range []place{{3, ""}, {4, ""}, {4, journal.Waiting}, {4, journal.Answered}, {5, ""}} {
		if !f.add(f.last, frame{place: p, text: []byte("x")}) {
			t.Fatal(p)
		}
	}
	if f.add(place{seq: 4}, frame{place: place{seq: 6}}) {
		t.Error("a frame was added that follows another one")
	}
	for at, want := range map[place]string{
		{1, ""}: "[] true", {2, ""}: "[3 4 4-waiting 4-answered 5] false", {3, ""}: "[4 4-waiting 4-answered 5] false",
		{3, journal.Drained}: "[4 4-waiting 4-answered 5] false", {4, ""}: "[4-waiting 4-answered 5] false",
		{4, journal.Waiting}: "[4-answered 5] false", {4, journal.Drained}: "[4-waiting 4-answered 5] false",
		{5, ""}: "[] false", {5, journal.Drained}: "[] false", {9, ""}: "[] false",
	} {
		frames, _, behind, _ := f.after(at)
		ids := []string{}
		for _, next := range frames {
			ids = append(ids, next.String())
		}
		if got := fmt.Sprint(ids, behind); got != want {
			t.Errorf("after %v: %s, want %s", at, got, want)
		}
	}
}

// A feed whose first client named a place that does not exist begins again for the next.
func TestFeedLower(t *testing.T) {
	f := &feed{from: place{seq: 999}, last: place{seq: 999}, news: make(chan struct{})}
	rows, at := f.start(t.Context())
	f.lower(place{seq: 3})
	if rows.Err() == nil || at.seq != 999 {
		t.Errorf("the follower continues after %v", at)
	}
	if _, at = f.start(t.Context()); at.seq != 3 {
		t.Errorf("it begins after %v", at)
	}
	f.add(at, frame{place: place{seq: 4}})
	f.lower(place{seq: 1})
	if _, _, behind, _ := f.after(place{seq: 1}); !behind {
		t.Error("a feed that has frames begins again")
	}
}
