package eval

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"

	"github.com/stonelayer/stone/internal/money"
	"github.com/stonelayer/stone/internal/text"
)

// A part is a part of a report: a table with a title.
type part struct {
	title string
	head  []string
	rows  [][]string
	notes []string
}

// Text returns the report as tables for a terminal.
func (r Report) Text() string { return tables(r.parts()...) }

// tables formats parts for a terminal.
func tables(parts ...part) string {
	var b strings.Builder
	for _, p := range parts {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if p.title != "" {
			fmt.Fprintln(&b, p.title)
		}
		widths := make([]int, len(p.head))
		for _, row := range append([][]string{p.head}, p.rows...) {
			for i, cell := range row {
				widths[i] = max(widths[i], text.Width(cell))
			}
		}
		if len(p.rows) > 0 {
			for _, row := range append([][]string{p.head}, p.rows...) {
				line := ""
				for i, cell := range row {
					line += cell + strings.Repeat(" ", widths[i]-text.Width(cell)+2)
				}
				fmt.Fprintln(&b, strings.TrimRight(line, " "))
			}
		}
		for _, n := range p.notes {
			fmt.Fprintln(&b, n)
		}
	}
	return b.String()
}

// Markdown returns the report as Markdown, for a comment on a pull request.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n", escaped(r.Pipeline))
	for _, p := range r.parts() {
		if p.title != "" {
			fmt.Fprintf(&b, "\n**%s**\n", escaped(p.title))
		}
		if len(p.rows) > 0 {
			fmt.Fprintf(&b, "\n| %s |\n|%s\n", strings.Join(p.head, " | "), strings.Repeat("---|", len(p.head)))
			for _, row := range p.rows {
				cells := make([]string, len(row))
				for i, cell := range row {
					cells[i] = escaped(cell)
				}
				fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
			}
		}
		for _, n := range p.notes {
			fmt.Fprintf(&b, "\n%s\n", escaped(n))
		}
	}
	return b.String()
}

// escaped escapes data, so that it is not interpreted as Markdown or HTML.
func escaped(s string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "&", "&amp;", "`", "\\`", "*", "\\*", "[", "\\[").Replace(text.Line(s))
}

func (r Report) parts() []part {
	all := []part{r.scores()}
	all = append(all, r.trials()...)
	all = append(all, r.asked()...)
	all = append(all, r.sliced()...)
	if r.Against != nil {
		all = append(all, r.Against.parts()...)
	}
	if len(r.Failures) > 0 {
		p := part{title: "No answer, or an error", head: []string{"case", "trial", "why"}}
		for _, f := range r.Failures {
			p.rows = append(p.rows, []string{short(f.Case), fmt.Sprint(f.Trial), text.Line(f.Why)})
		}
		all = append(all, p)
	}
	if r.Gate != nil {
		all = append(all, r.Gate.part())
	}
	return all
}

func (r Report) scores() part {
	p := part{head: []string{"score", "mean", "95 %", "right", "wrong", "no answer", "errors"}}
	for _, s := range r.Scores {
		p.rows = append(p.rows, []string{text.Line(s.Name), meanOf(s.Estimate), interval(s.Estimate), fmt.Sprint(s.Right), fmt.Sprint(s.Wrong), fmt.Sprint(s.NoAnswer), fmt.Sprint(s.Errors)})
	}
	line := text.Plural(r.Cases, "case")
	if r.Trials > 1 {
		line += fmt.Sprintf(" × %d trials", r.Trials)
	}
	if n := clustersOf(r.Scores); n > 0 {
		line += fmt.Sprintf(" in %d clusters", n)
	}
	if r.Repeated > 0 {
		line += fmt.Sprintf(", %d repeated rows left out", r.Repeated)
	}
	line += ", answers cost " + usd(r.Cost.USD)
	if r.Cost.JudgesUSD > 0 {
		line += ", judges " + usd(r.Cost.JudgesUSD)
	}
	if r.Reused > 0 {
		line += fmt.Sprintf("; %d answers (%s) are of an earlier run", r.Reused, usd(r.Cost.ReusedUSD))
	}
	p.notes = append(append(p.notes, line), r.recordedNotes()...)
	if r.Looks > 0 {
		p.notes = append(p.notes, fmt.Sprintf("look %d at this test split: each choice that it guides makes its figures better than the truth", r.Looks))
	}
	if w := r.Cost.Whole; w != nil {
		p.notes = append(p.notes, w.String())
	}
	return p
}

// String returns the estimated cost of all cases.
func (w Whole) String() string {
	return fmt.Sprintf("all %d cases would cost about %s (95 %% between %s and %s)", w.Cases, usd(w.USD), usd(w.Low), usd(w.High))
}

// clustersOf returns the number of clusters, or 0 if there are none.
func clustersOf(scores []ScoreReport) int {
	for _, s := range scores {
		if s.Clusters < s.N {
			return s.Clusters
		}
	}
	return 0
}

func (r Report) trials() (all []part) {
	if r.Trials == 1 {
		return nil
	}
	p := part{title: "Trials", head: []string{"score", "k", "pass@k", "pass^k", "cases that flip"}}
	for _, s := range r.Scores {
		for k := range s.PassAt {
			row := []string{text.Line(s.Name), fmt.Sprint(k + 1), mean4(s.PassAt[k]), mean4(s.PassAll[k]), ""}
			if k == 0 {
				row[4] = fmt.Sprint(s.Flips)
			}
			p.rows = append(p.rows, row)
		}
	}
	return []part{p}
}

func (r Report) sliced() (all []part) {
	p := part{title: "Slices", head: []string{"score", "slice", "cases", "mean", "95 %"}}
	for _, s := range r.Scores {
		for _, l := range s.Slices {
			p.rows = append(p.rows, []string{text.Line(s.Name), text.Line(l.Column + "=" + l.Value), fmt.Sprint(l.N), meanOf(l.Estimate), interval(l.Estimate)})
		}
	}
	if len(p.rows) == 0 {
		return nil
	}
	return []part{p}
}

func (c *comparison) parts() []part {
	p := part{title: "Against " + text.Line(c.With), head: []string{"score", "difference", "95 %", "gained", "lost", "p"}}
	slices := part{title: "Slices that differ (p adjusted by Holm)", head: []string{"score", "slice", "cases", "difference", "95 %", "p"}}
	turned := part{title: "Cases that turned", head: []string{"score", "case", "before", "now", "input"}}
	for _, s := range c.Scores {
		p.rows = append(p.rows, []string{text.Line(s.Name), signed(s.Mean), between(s.Estimate), fmt.Sprint(s.Gained), fmt.Sprint(s.Lost), mean4(s.P)})
		for _, l := range s.Slices {
			if l.P < 0.05 {
				slices.rows = append(slices.rows, []string{text.Line(s.Name), text.Line(l.Column + "=" + l.Value), fmt.Sprint(l.N), signed(l.Mean), between(l.Estimate), mean4(l.P)})
			}
		}
		if more := len(s.Turned) - 10; more > 0 {
			turned.notes = append(turned.notes, fmt.Sprintf("%d more of %s: see the run's page, or --json", more, text.Line(s.Name)))
		}
		for _, t := range s.Turned[:min(len(s.Turned), 10)] {
			turned.rows = append(turned.rows, []string{text.Line(s.Name), short(t.Case), mean4(t.Before), mean4(t.Now), text.Cut(t.Input, 60)})
		}
	}
	line := text.Plural(c.Cases, "case") + " in both"
	if c.New > 0 {
		line += fmt.Sprintf(", %d only now", c.New)
	}
	if c.Missing > 0 {
		line += fmt.Sprintf(", %d only before", c.Missing)
	}
	more := fmt.Sprintf("a case costs %s USD (95 %% %s)", money.Signed(c.USD.Mean), bounded(c.USD, money.Signed))
	if c.Seconds.N > 0 {
		more += fmt.Sprintf(" and takes %+.3f s (95 %% %s)", c.Seconds.Mean, bounded(c.Seconds, signed3))
	}
	p.notes = append(p.notes, line, more+" more")
	all := []part{p}
	for _, more := range []part{slices, turned} {
		if len(more.rows) > 0 {
			all = append(all, more)
		}
	}
	return all
}

func (v *Verdict) part() part {
	p := part{title: "Gate: " + v.Verdict, head: []string{"rule", "verdict", "found"}}
	for _, r := range v.Rules {
		found := r.Found
		if r.Needed > 0 {
			found += fmt.Sprintf("; about %d cases would tell", r.Needed)
		}
		p.rows = append(p.rows, []string{text.Line(r.Rule), r.Verdict, text.Line(found)})
	}
	return p
}

func mean4(x float64) string { return fmt.Sprintf("%.4f", x) }

func signed(x float64) string { return fmt.Sprintf("%+.4f", x) }

func signed3(x float64) string { return fmt.Sprintf("%+.3f", x) }

// meanOf formats a mean. It returns "-" if there are no scores.
func meanOf(e Estimate) string {
	if e.N == 0 {
		return "-"
	}
	return mean4(e.Mean)
}

func interval(e Estimate) string {
	if e.N == 0 {
		return "-"
	}
	return bounded(e, mean4)
}

func between(e Estimate) string { return bounded(e, signed) }

// bounded formats the interval of an estimate. It returns "unknown" if the interval has no bounds, as for a single cluster.
func bounded(e Estimate, print func(float64) string) string {
	if e.High > math.MaxFloat32 {
		return "unknown"
	}
	return print(e.Low) + " to " + print(e.High)
}

// usd formats an amount, even if it is zero.
func usd(x float64) string {
	if said := money.USD(x, false); said != "" {
		return "$" + said
	}
	return "$0"
}

// short returns the beginning of a digest, by which reports identify a case.
func short(id string) string { return id[:min(len(id), 12)] }

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string       `xml:"name,attr"`
	Class   string       `xml:"classname,attr"`
	Failure *junitResult `xml:"failure,omitempty"`
	Skipped *junitResult `xml:"skipped,omitempty"`
	Out     string       `xml:"system-out,omitempty"`
}

type junitResult struct {
	Message string `xml:"message,attr"`
}

// JUnit returns the report as JUnit XML. Each rule of the gate and each score is a test case; a rule that could not be decided is
// a skipped test case.
func (r Report) JUnit() ([]byte, error) {
	s := junitSuite{Name: "stone eval " + r.Pipeline}
	for _, score := range r.Scores {
		s.Cases = append(s.Cases, junitCase{Name: score.Name, Class: r.Pipeline, Out: fmt.Sprintf("%s, 95 %% %s of %d cases", mean4(score.Mean), interval(score.Estimate), score.N)})
	}
	if r.Gate != nil {
		for _, rule := range r.Gate.Rules {
			c := junitCase{Name: rule.Rule, Class: r.Pipeline + ".gate", Out: rule.Found}
			switch rule.Verdict {
			case GateFailed:
				c.Failure = &junitResult{rule.Found}
				s.Failures++
			case CannotTell:
				c.Skipped = &junitResult{"cannot tell: " + rule.Found}
				s.Skipped++
			}
			s.Cases = append(s.Cases, c)
		}
	}
	s.Tests = len(s.Cases)
	data, err := xml.MarshalIndent(s, "", "  ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}
