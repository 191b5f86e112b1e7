package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// A tenant with many waiting readers delays only itself.
func TestPlacesAreSharedByTenant(t *testing.T) {
	for _, c := range []struct {
		all, own int
		arrive   string // a reader of the tenant, one after the other
		inside   string // who has a place at first
		want     string // the order in which places are given as readers leave, the oldest first
	}{
		{1, 1, "aaaaaaaab", "a", "a b a a a a a a a"},
		{1, 1, "aaaabbbbc", "a", "a b c a b a b a b"},
		{2, 2, "aaaaab", "aa", "a a b a a a"},
		{4, 2, "aaaaaabc", "aabc", "a a b c a a a a"}, // a tenant leaves room for others
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlaces(c.all, c.own)
			type place struct {
				tenant string
				leave  func()
			}
			var inside []place
			var order []string
			for i := range c.arrive {
				tenant := c.arrive[i : i+1]
				go func() {
					leave, err := p.enter(t.Context(), nil, tenant)
					if err != nil {
						t.Error(err)
						return
					}
					inside, order = append(inside, place{tenant, leave}), append(order, tenant) // one at a time: see Wait
				}()
				synctest.Wait()
			}
			if got := strings.Join(order, ""); got != c.inside {
				t.Errorf("%s: %s have places, want %s", c.arrive, got, c.inside)
			}
			for len(inside) > 0 {
				first := inside[0]
				inside = inside[1:]
				first.leave()
				synctest.Wait()
			}
			if got := strings.Join(order, " "); got != c.want {
				t.Errorf("%d places for %s: %s, want %s", c.all, c.arrive, got, c.want)
			}
			if p.free != c.all || len(p.taken)+len(p.last)+len(p.waiting) > 0 {
				t.Errorf("at the end: %s", fmt.Sprint(p.free, p.taken, p.last, p.waiting))
			}
		})
	}
}

// A reader that gives up takes no place.
func TestPlacesOfReadersThatLeave(t *testing.T) {
	p := newPlaces(1, 1)
	leave, err := p.enter(t.Context(), nil, "a")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.enter(gone, nil, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("enter without a place: %v, want that the reader has gone", err)
	}
	closed := make(chan struct{})
	close(closed)
	if _, err := p.enter(t.Context(), closed, "b"); err == nil {
		t.Error("enter while the server closes: no error")
	}
	leave()
	if leave, err = p.enter(gone, nil, "b"); err != nil {
		t.Errorf("enter with a free place: %v", err)
	}
	leave()
}
