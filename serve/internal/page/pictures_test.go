package page_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// desk records a week of a support desk in a database of its own, of which the pictures of the documents are taken. It returns the
// addresses of the server that shows the runs and of the one that offers a pipeline.
func (p *program) desk() (shown, offered string) {
	p.Helper()
	d := &program{T: p.T, path: p.path, db: filepath.Join(filepath.Dir(p.db), "desk", "stone.db"), signIn: p.signIn}
	if err := os.Mkdir(filepath.Dir(d.db), 0o700); err != nil {
		p.Fatal(err)
	}
	d.days()
	d.run(0, "run", "--id", "invoices-november", "--", "invoices", "10000")
	d.run(0, "run", "--id", "repair-mean", "--", "agent")
	d.run(0, "run", "--id", "ticket-4711", "--", "call", "cascade")
	d.run(0, "run", "--id", "ticket-4711-race", "--", "call", "race")
	var rows strings.Builder
	for i := range 40 {
		l := letters[i%len(letters)]
		fmt.Fprintf(&rows, `{"letter":%q,"expected":%q,"language":%q}`+"\n", fmt.Sprintf(l.text, 4700+7*i), l.urgency, []string{"de", "en", "en"}[i%3])
	}
	rows.WriteString(`{"letter":"?","expected":"later","language":"en"}`)
	gate := []byte(`{:no-worse-than {:exact 0.02} :usd-at-most 0.5}`)
	folder := filepath.Dir(d.db)
	if err := errors.Join(os.WriteFile(filepath.Join(folder, "letters.jsonl"), []byte(rows.String()), 0o600), os.WriteFile(filepath.Join(folder, "gate.edn"), gate, 0o600)); err != nil {
		p.Fatal(err)
	}
	d.run(0, "eval", "-q", "--id", "triage-large", "--data", "letters.jsonl", "--score", "exact", "--slice", "language", "--", "triage")
	d.run(5, "eval", "-q", "--id", "triage-small", "--data", "letters.jsonl", "--score", "exact", "--slice", "language", "--against", "triage-large", "--gate", "gate.edn", "--", "triage", "small")
	d.run(1, "run", "--id", "reply-4718", "--", "refund")
	d.run(3, "run", "--id", "refund-4711", "--", "support")
	d.run(3, "run", "--id", "reply-4720", "--", "reply")
	return d.serve("inspect"), d.serve("serve", "--address", "127.0.0.1:0", "--", "reply")
}

// letters are what customers write, with how urgent it is.
var letters = []struct{ text, urgency string }{
	{"My cup arrived broken. Order %d.", "soon"},
	{"Please send invoice %d again, our address is new.", "later"},
	{"You charged me twice for order %d!", "now"},
	{"When does order %d arrive? The wedding is on Saturday.", "now"},
	{"Thank you for order %d, the bowls are beautiful.", "later"},
	{"The glaze of order %d has a crack.", "soon"},
}

// days records runs of the days before.
func (p *program) days() {
	p.Helper()
	db, err := sqlite.Open(p.db, sqlite.Options{})
	if err != nil {
		p.Fatal(err)
	}
	defer db.Close()
	for day := range 6 {
		for i := range 14 + 5*day%9 {
			info := journal.RunInfo{ID: fmt.Sprintf("reply-%d", 4400+40*day+i), Pipeline: "reply", Started: time.Now().Add(time.Duration(day-6)*24*time.Hour + time.Duration(i)*time.Minute)}
			out := journal.Outcome{State: journal.Done, Ended: info.Started.Add(time.Duration(300+170*(i%7)) * time.Millisecond), Steps: 14,
				Usage: budget.Total{Usage: budget.Usage{USD: 0.02 + float64(i%5)/500, InputTokens: 1800, OutputTokens: 90}}}
			switch i % 9 {
			case 3:
				info.Pipeline, info.ID, out.Usage.USD = "support", fmt.Sprintf("refund-%d", 4400+40*day+i), 0.011
			case 8:
				out.State = journal.Canceled
			case 5:
				if day%2 == 0 {
					out.State, out.Failure = journal.Failed, &journal.Failure{Kind: "runtime/unavailable", Path: "reply/tickets/summarise", Reason: "503 Service Unavailable: the model is overloaded"}
				}
			}
			_, err := db.Acquire(p.Context(), info.ID)
			if err = cmp.Or(err, db.Begin(p.Context(), info, dag.DAG{})); err != nil {
				p.Fatal(err)
			}
			if err := errors.Join(db.End(p.Context(), info.ID, out), db.Release(info.ID)); err != nil {
				p.Fatal(err)
			}
		}
	}
}
