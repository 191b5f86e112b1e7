package commands

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/progress"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/x/eval"
)

// evalProgress shows the progress of an evaluation. At a terminal, it updates one line; elsewhere, it writes a line every 10 %.
type evalProgress struct {
	out     io.Writer
	live    bool
	account *budget.Account
	began   time.Time
	shown   time.Time
}

// show shows the progress, unless it was shown only a moment ago.
func (e *evalProgress) show(p eval.Progress) {
	switch {
	case p.Round != "":
		fmt.Fprintf(e.out, "%s, $%s\n", text.Line(p.Round), cmp.Or(money.USD(e.account.Used().USD, false), "0"))
		return
	case e.live && p.Done < p.Total && time.Since(e.shown) < 200*time.Millisecond:
		return
	case !e.live && p.Done*10/p.Total == (p.Done-1)*10/p.Total:
		return
	}
	e.shown = time.Now()
	switch line := e.line(p); {
	case !e.live:
		fmt.Fprintln(e.out, line)
	case p.Done < p.Total:
		fmt.Fprintf(e.out, "\r%s\x1b[K", line)
	default: // the report follows
		fmt.Fprintf(e.out, "\r%s\x1b[K\n", line)
		e.shown = time.Time{}
	}
}

func (e *evalProgress) line(p eval.Progress) string {
	line := fmt.Sprintf("%d of %d answers", p.Done, p.Total)
	if p.Recorded > 0 {
		line += fmt.Sprintf(", %d recorded before", p.Recorded)
	}
	if p.Failed > 0 {
		line += fmt.Sprintf(", %d failed", p.Failed)
	}
	made, left, elapsed := p.Done-p.Recorded, p.Total-p.Done, time.Since(e.began)
	used := e.account.Used().USD
	if used > 0 {
		line += ", $" + money.USD(used, false)
	}
	if made == 0 {
		return line
	}
	line += fmt.Sprintf(", %.1f/s", float64(made)/max(elapsed.Seconds(), 1e-9))
	if left > 0 {
		line += "; about " + progress.Duration(time.Duration(float64(elapsed)/float64(made)*float64(left)))
		if used > 0 {
			line += " and $" + money.USD(used/float64(p.Done)*float64(left), false)
		}
		line += " to go"
	}
	return line
}

// close removes the progress line of an evaluation that did not finish.
func (e *evalProgress) close() {
	if e.live && !e.shown.IsZero() {
		fmt.Fprint(e.out, "\r\x1b[K")
	}
}
