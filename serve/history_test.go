package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/serve"
)

// A second device gets the messages that the first one has, with their ids, and continues the conversation.
func TestHistory(t *testing.T) {
	for _, name := range []string{"ai", "ai7", "@ag-ui/client"} {
		peer.Held(t, name, "history")
	}
	q := openQuarry(t, serve.Config{Journal: memdb.New(t)})
	program, err := os.ReadFile("testdata/history.mjs")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--input-type=module", "-")
	cmd.Dir = filepath.Dir(filepath.Dir(peer.Module(t, "ai")))
	cmd.Stdin = strings.NewReader(string(program))
	cmd.Env = append(os.Environ(), "STONE_URL="+q.URL)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "done\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A page has the newest turns that fit into its size, and Next leads to the ones before; other tenants have none of it.
func TestHistoryPages(t *testing.T) {
	q := openQuarry(t, serve.Config{Journal: memdb.New(t), Access: byHeader{}})
	type history struct {
		Messages []struct{ ID, Role string }
		Next     string
	}
	get := func(tenant, path string) (page history, status int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", q.URL+"/v1/ui/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Tenant", tenant)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return page, resp.StatusCode
	}
	var long strings.Builder
	for i := range 130_000 {
		fmt.Fprint(&long, i, " ")
	}
	for i := range 5 {
		if r := chat(t, "POST", q.URL+"/v1/ui/mason", saying("c", fmt.Sprint("m", i), long.String()), whole, "X-Tenant", "acme"); r.status != http.StatusOK {
			t.Fatalf("%+v", r.status)
		}
	}
	var got []string
	for path, pages := "mason/c", 0; path != ""; pages++ {
		page, _ := get("acme", path)
		if want := []int{4, 4, 2, 0}[min(pages, 3)]; len(page.Messages) != want {
			t.Errorf("page %d has %d messages, want %d", pages, len(page.Messages), want)
		}
		var ids []string
		for _, m := range page.Messages {
			ids = append(ids, m.Role+" "+m.ID)
		}
		if got, path = append(ids, got...), ""; page.Next != "" {
			path = "mason/c?before=" + page.Next
		}
	}
	if want := "user m0,assistant c-turn-1,user m1,assistant c-turn-2,user m2,assistant c-turn-3,user m3,assistant c-turn-4,user m4,assistant c-turn-5"; strings.Join(got, ",") != want {
		t.Errorf("%q, want %s", got, want)
	}
	if page, _ := get("other", "mason/c"); len(page.Messages) > 0 || page.Next != "" {
		t.Errorf("another tenant has %+v", page)
	}
	for path, want := range map[string]int{"mason/c?before=nothing": 404, "none/c": 404, "none": 404, "painter/c": 409, "mason/c?before=c-turn-1": 200} {
		if _, status := get("acme", path); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
}
