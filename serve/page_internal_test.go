package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stonelayer/stone/journal"
)

// shelf has runs of some sizes, the newest first. It removes runs while they are listed.
type shelf struct {
	journal.Journal
	runs    []journal.RunInfo
	removes bool
	most    int // bytes that one call returned
}

func (s *shelf) Runs(_ context.Context, q journal.Query) ([]journal.RunInfo, error) {
	from := 0
	if q.Before != "" {
		i := slices.IndexFunc(s.runs, func(r journal.RunInfo) bool { return r.ID == q.Before })
		if i < 0 {
			return nil, journal.ErrNoRun
		}
		from = i + 1
	}
	page := slices.Clone(s.runs[from:min(from+q.Limit, len(s.runs))])
	size := 0
	for _, r := range page {
		size += sizeOf(r)
	}
	s.most = max(s.most, size)
	if s.removes && len(page) > 0 && rand.N(3) == 0 {
		i := from + rand.N(len(page))
		s.runs = slices.Delete(s.runs, i, i+1)
	}
	return page, nil
}

// A page ends at its limit or where it is large, and the pages together have all runs once.
func TestPageOf(t *testing.T) {
	for _, c := range []struct {
		runs, bytes, limit, pages, most int
		removes                         bool
	}{
		{5000, 0, maxPage, 6, 2 * pageBytes, false},        // the last one is empty
		{3, 0, 3, 2, pageBytes, false},                     // as ever
		{0, 0, 7, 1, 0, false},                             //
		{1000, 10 << 10, maxPage, 3, 2 * pageBytes, false}, // as with the largest labels
		{50, 3 << 20, maxPage, 50, 17 * 3 << 20, false},
		{2000, 10 << 10, maxPage, 0, 2 * pageBytes, true},
		{100, 1 << 20, 30, 0, 17 << 20, true},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			s := &shelf{removes: c.removes}
			source, err := json.Marshal(make([]byte, c.bytes*3/4))
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.runs {
				s.runs = append(s.runs, journal.RunInfo{ID: fmt.Sprint("run-", i), Source: source})
			}
			var seen []string
			q, pages := journal.Query{Limit: c.limit}, 0
			for more := true; more; pages++ {
				var runs []journal.RunInfo
				var err error
				if runs, more, err = pageOf(t.Context(), s, q); err != nil {
					t.Fatal(err)
				}
				size := 0
				for _, r := range runs {
					seen, size = append(seen, r.ID), size+sizeOf(r)
				}
				if len(runs) > c.limit || len(runs) > 1 && size > pageBytes {
					t.Fatalf("a page of %d runs has %d bytes", len(runs), size)
				}
				if more {
					q.Before = runs[len(runs)-1].ID
					if c.removes && !slices.ContainsFunc(s.runs, func(r journal.RunInfo) bool { return r.ID == q.Before }) {
						return // as for any client whose place was removed
					}
				}
			}
			if all := slices.Sorted(slices.Values(seen)); len(slices.Compact(all)) != len(seen) {
				t.Error("a run is on two pages")
			}
			for _, r := range s.runs {
				if !slices.Contains(seen, r.ID) {
					t.Errorf("%s is on no page", r.ID)
				}
			}
			if c.pages > 0 && pages != c.pages || s.most > c.most {
				t.Errorf("%d pages, %d bytes at once, want %d and at most %d", pages, s.most, c.pages, c.most)
			}
		})
	}
}
