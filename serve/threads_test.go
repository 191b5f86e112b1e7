package serve_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// The conversations of a caller are listed, each once, in pages; another tenant's are not.
func TestThreads(t *testing.T) {
	q := openQuarry(t, serve.Config{Journal: memdb.New(t), Access: byHeader{}})
	get := func(tenant, path string, to any) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", q.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Tenant", tenant)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(to); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, resp.Status, err)
		}
	}
	for _, turn := range [][3]string{{"acme", "a", "m1"}, {"acme", "b", "m1"}, {"acme", "a", "m2"}, {"other", "a", "m1"}, {"acme", "c", "m1"}, {"acme", "a", "m3"}} {
		if r := chat(t, "POST", q.URL+"/v1/ui/mason", saying(turn[1], turn[2], "hello"), whole, "X-Tenant", turn[0]); r.status != http.StatusOK {
			t.Fatalf("%+v", r)
		}
	}
	var got []string
	for next, pages := "", 0; pages < 9; pages++ {
		var page api.Threads
		if get("acme", "/v1/threads?limit=1"+next, &page); len(page.Threads) > 1 {
			t.Fatalf("%d on a page of one", len(page.Threads))
		}
		for _, th := range page.Threads {
			got = append(got, fmt.Sprint(th.ID, " ", th.Pipeline, " ", th.Turns, " ", th.Newest, " ", th.State))
			if th.Started.IsZero() || th.Last.Before(th.Started) || th.Turns > 1 != th.Last.After(th.Started) {
				t.Errorf("%+v", th)
			}
		}
		if next = "&before=" + page.Next; page.Next == "" {
			break
		}
	}
	if want := []string{"a mason 3 a-turn-3 done", "c mason 1 c-turn-1 done", "b mason 1 b-turn-1 done"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var all, none api.Threads
	if get("other", "/v1/threads", &all); len(all.Threads) != 1 || all.Threads[0].Turns != 1 {
		t.Errorf("%+v, want the one of the tenant", all)
	}
	if get("acme", "/v1/threads?pipeline=page", &none); len(none.Threads) != 0 {
		t.Errorf("%+v, want none", none)
	}
	var run api.Run
	get("acme", "/v1/runs/a-turn-3", &run)
	if names := slices.Sorted(maps.Keys(run.Labels)); !slices.Equal(names, []string{"chat", "tenant"}) {
		t.Errorf("labels %q", names)
	}
	seen := 0 // without a tenant, all of them
	for th, err := range (&api.Client{URL: q.URL}).Threads(t.Context(), "mason") {
		if seen += th.Turns; err != nil {
			t.Fatal(err)
		}
	}
	if seen != 6 {
		t.Errorf("%d turns, want 6", seen)
	}
}
