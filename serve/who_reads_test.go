package serve_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
)

// Earlier responses are read by callers with the role read alone, whatever they are read for.
func TestGatewayRoles(t *testing.T) {
	h := gatewayServer(t, nil, byHeader{})
	var first struct{ ID string }
	if err := json.Unmarshal([]byte(h.want("POST", "/v1/responses", `{"model":"stone/count","input":"a","background":true,"store":true}`, 200, "")), &first); err != nil {
		t.Fatal(err)
	}
	h.want("GET", "/v1/runs/"+first.ID+"/result?wait=30s", "", 200, "")
	next := `{"model":"stone/count","input":"b","previous_response_id":"` + first.ID + `"}`
	for roles, want := range map[string]int{"scrape": 403, "start": 403, "read": 200} {
		if status, text := h.do("POST", "/v1/responses/"+first.ID+"/cancel", "", "X-Roles", roles); status != want {
			t.Errorf("cancel by %s: %d %s, want %d", roles, status, text, want)
		}
	}
	for roles, want := range map[string]int{"start": 403, "read": 403, "start read": 200} {
		if status, text := h.do("POST", "/v1/responses", next, "X-Roles", roles); status != want {
			t.Errorf("continued by %s: %d %s, want %d", roles, status, text, want)
		}
	}
	// Who starts a response is answered without the role.
	if status, text := h.do("POST", "/v1/responses", `{"model":"stone/count","input":"a","background":true,"store":true}`, "X-Roles", "start"); status != 200 {
		t.Errorf("%d %s", status, text)
	}
}

// The time to wait for a result has a unit, or is in seconds.
func TestWaitUnits(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"marble"}}`, 201, "")
	for _, wait := range []string{"1m", "60", "60s", "0.5m"} {
		h.want("GET", "/v1/runs/a/result?wait="+wait, "", 202, `"state":"waiting"`) // at once it would be running
		h.want("PUT", "/v1/runs/a"+strings.ReplaceAll(wait, ".", "-"), `{"pipeline":"draft","input":{"text":"x"}}`, 201, "")
		h.want("GET", "/v1/runs/a"+strings.ReplaceAll(wait, ".", "-")+"/result?wait="+wait, "", 200, "")
	}
	h.want("GET", "/v1/runs/a/result?wait=soon", "", 400, "want a duration, such as 30s")
}

// Everyone may list the runs of a tenant, of those that they see.
func TestRunsOfTenant(t *testing.T) {
	h := newHouse(t, byHeader{})
	for _, tenant := range []string{"acme", "globex"} {
		if status, text := h.do("PUT", "/v1/runs/a-"+tenant, `{"pipeline":"draft","input":{"text":"x"}}`, "X-Tenant", tenant); status != http.StatusCreated {
			t.Fatalf("%d %s", status, text)
		}
	}
	for tenant, want := range map[string]string{"": "acme.a-acme", "acme": "a-acme", "globex": "a-globex"} {
		_, text := h.do("GET", "/v1/runs?label.tenant=acme", "", "X-Tenant", tenant)
		if n := strings.Count(text, `"pipeline"`); n != 1 || !strings.Contains(text, `"id":"`+want+`"`) {
			t.Errorf("%q sees %s, want %s", tenant, text, want)
		}
	}
}

// A run that somebody gives the label of a conversation is no turn of it.
func TestConversationLabel(t *testing.T) {
	q := openQuarry(t, serve.Config{Journal: memdb.New(t), Access: byHeader{}})
	for i, label := range []string{"", "labelled", ""} {
		if label != "" {
			req, _ := http.NewRequest("PUT", q.URL+"/v1/runs/"+label, strings.NewReader(`{"pipeline":"page","input":"slate","labels":{"chat":"c"}}`))
			req.Header.Set("Content-Type", "application/json")
			if r, err := http.DefaultClient.Do(req); err != nil || r.StatusCode != http.StatusCreated {
				t.Fatalf("%v, %v", r, err)
			}
			continue
		}
		if r := chat(t, "POST", q.URL+"/v1/ui/mason", saying("c", "m"+string(rune('1'+i)), "hello"), whole); r.status != http.StatusOK {
			t.Errorf("message %d: %d %s", i, r.status, r.problem)
		}
	}
}
