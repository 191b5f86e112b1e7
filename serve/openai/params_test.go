package openai

import (
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// deadlined is a reply over a connection with a deadline for reading.
type deadlined struct {
	*httptest.ResponseRecorder
	all []time.Time
}

func (d *deadlined) SetReadDeadline(t time.Time) error {
	d.all = append(d.all, t)
	return nil
}

// A body must arrive in time; the run may take longer.
func TestReadDeadline(t *testing.T) {
	w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	if _, err := read(w, httptest.NewRequest("POST", "/v1/responses", strings.NewReader("{}"))); err != nil {
		t.Fatal(err)
	}
	if len(w.all) != 2 || w.all[0].IsZero() || !w.all[1].IsZero() {
		t.Errorf("the deadlines were %v, want one that is removed", w.all)
	}
}

// The page for users has the table, in the order in which it is searched.
func TestParameters(t *testing.T) {
	if !slices.IsSortedFunc(Parameters, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the parameters are not in order")
	}
	var table strings.Builder
	table.WriteString("| parameter | Responses | Chat | |\n| --- | --- | --- | --- |\n")
	for _, p := range Parameters {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", p.Name, p.Responses, p.Chat, p.Note)
	}
	page, err := os.ReadFile("../../docs/how-to/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/how-to/gateway.md lacks the table:\n%s", table.String())
	}
}
