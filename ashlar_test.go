package stone

import (
	"fmt"
	"testing"

	"github.com/stonelayer/stone/dag"
)

// An ashlar reads and produces what its parts do, except what they pass to each other.
func TestReadsAndProduces(t *testing.T) {
	read, draft := first("read", ticketType), from("draft", ticketType, draftType)
	names := func(types []dag.AnyType) (out []string) {
		for _, typ := range types {
			out = append(out, typ.Name())
		}
		return out
	}
	for _, tt := range []struct {
		name           string
		p              Ashlar
		reads, produce string
	}{
		{"leaf", draft, `["ticket"]`, "[draft]"},
		{"a leaf that reads in other ways", readingLeaf("end", reportType, dag.All(draftType), dag.Maybe(reviewType), dag.Latest), `[every "draft" optional "review"]`, "[report]"},
		{"what an earlier step produces", Seq("p", read, draft), "[]", "[ticket draft]"},
		{"what a later step produces", Seq("p", draft, read), `["ticket"]`, "[draft ticket]"},
		{"each once", Seq("p", draft, from("again", ticketType, draftType)), `["ticket"]`, "[draft]"},
		{"the condition of a loop", Loop("l", draft, Until(reviewType, done), 2), `["ticket" "review"]`, "[draft]"},
		{"branches", fork("m", draft, from("other", reviewType, reportType)), `["ticket" "review"]`, "[draft report]"},
		{"items and lanes", Seq("p", overTickets("each", from("write", itemType, draftType)), gather("end", draftType, reportType)), `["ticket"]`, "[item draft report]"},
		{"helpers", New("judged", draftType, nil, Children(Walk{}.InOrder(from("judge", draftType, reviewType), from("other", ticketType, reviewType)))), `["ticket"]`, "[draft review]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := fmt.Sprint(tt.p.QueriesAll()); got != tt.reads {
				t.Errorf("it reads %s, want %s", got, tt.reads)
			}
			if got := fmt.Sprint(names(tt.p.ProducesAll())); got != tt.produce {
				t.Errorf("it produces %s, want %s", got, tt.produce)
			}
		})
	}
}

func TestLens(t *testing.T) {
	if got := fmt.Sprint(Match("m", Lens("deep", "count")).Lens(), first("a", draftType).Lens()); got != "[deep count] []" {
		t.Errorf("got %s", got)
	}
}

func fork(name string, children ...Ashlar) Ashlar {
	var branches []Branch
	for _, c := range children {
		branches = append(branches, Case(c.Name(), c))
	}
	return Match(name, Lens("text"), branches...)
}
