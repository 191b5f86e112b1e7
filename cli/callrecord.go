package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/text"
)

// sayCall prints the record of a call: the capability that answered, and each attempt with the
// verdicts on its answer.
func sayCall(say func(name, value string), r *call.Record) {
	asked := slices.DeleteFunc([]string{r.Intent, r.Strategy}, func(s string) bool { return s == "" })
	end := fmt.Sprintf("%s answered in %s", strings.TrimSpace(r.Cap+" "+r.Version), text.Plural(len(r.Tried), "attempt"))
	if r.Failure != "" {
		end = fmt.Sprintf("%s after %s", r.Failure, text.Plural(len(r.Tried), "attempt"))
	}
	if r.From != "" {
		end += " of the run " + r.From
	}
	say("call", strings.Join(append(asked, end), ", "))
	if r.Disagreed != "" {
		say("", "disagreed: "+r.Disagreed)
	}
	if r.Input != nil {
		say("input", fmt.Sprintf("score %.3g", r.Input.Score))
		sayVerdicts(say, r.Input.Verdicts)
	}
	for _, a := range r.Tried {
		name := fmt.Sprintf("%s %d", a.Cap, a.Number)
		if a.Repair {
			name += " repair"
		}
		switch {
		case a.Cancelled:
			name += ": canceled"
		case a.Failure != "":
			name += ": " + a.Failure
		default:
			name += ": passed"
		}
		if a.Score != nil {
			name += fmt.Sprintf(", score %.3g", *a.Score)
		}
		switch method := a.Usage.Sandbox; method {
		case "":
		case "unconfined":
			name += ", " + method
		default:
			name += ", confined by " + method
		}
		say("attempt", name)
		sayVerdicts(say, a.Verdicts)
		for _, f := range a.Findings {
			say("", "  "+f.String())
		}
	}
	for _, j := range r.Rejected {
		say("not asked", j.Cap+": "+j.Reason)
	}
}

func sayVerdicts(say func(name, value string), all []call.Verdict) {
	for _, v := range all {
		line := fmt.Sprintf("  %s %s %s", v.As, v.By, v.State)
		if v.Score != nil {
			line += fmt.Sprintf(", %.3g", *v.Score)
		}
		if v.Why != "" {
			line += ": " + v.Why
		}
		say("", line)
	}
}
